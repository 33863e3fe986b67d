"""Holds attention kernels against the exact result, within error bounds derived from the inputs.

    import attest

    attest.assert_close(out, q, k, v, causal="bottom_right", numerics="p_cast_to_input")
    attest.assert_grads_close((dq, dk, dv), q, k, v, dout, out=out, lse=lse, causal="bottom_right")

Arrays are numpy's, torch's, jax's or any that np.asarray takes. `Features` lists the masks and other
features of a problem, `Numerics` how the arithmetic of a kernel is described. No tolerance is chosen.
"""

from attest._call import Results, problem
from attest._command import count, regime
from attest._features import Features, Numerics
from attest._judge import Bounds, assert_close, assert_grads_close, bounds, reference
from attest._library import InternalError, NothingProved, version

__version__ = version()

__all__ = ["Bounds", "Features", "InternalError", "NothingProved", "Numerics", "Results",
           "assert_close", "assert_grads_close", "bounds", "count", "problem", "reference", "regime"]
