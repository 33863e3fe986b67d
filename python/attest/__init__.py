"""Holds attention kernels against the exact result, within error bounds derived from the inputs.

    import attest

    attest.assert_close(out, q, k, v, causal="bottom_right", numerics="p_cast_to_input")
    attest.assert_grads_close((dq, dk, dv), q, k, v, dout, out=out, lse=lse, causal="bottom_right")
    attest.certify(my_attention).raise_if_refused()

Arrays are numpy's, torch's, jax's or any that np.asarray takes. `Features` lists the masks and other
features of a problem, `Numerics` how the arithmetic of a kernel is described. No tolerance is chosen.
"""

from attest._emulation.autotune import configurations
from attest._call import Results, problem
from attest._certify import certify, replay
from attest._command import regime
from attest._conventions import CONVENTIONS, Asked, Convention, Keyword
from attest._count import count
from attest._emulation.gpu import EmulatedGpu, EmulationError, Launch, emulated_gpu
from attest._features import Features, Numerics
from attest._judge import Bounds, assert_close, assert_grads_close, bounds, reference
from attest._library import InternalError, NothingProved, version
from attest._report import Report

__version__ = version()

__all__ = ["CONVENTIONS", "Asked", "Bounds", "Convention", "EmulatedGpu", "EmulationError", "Features",
           "InternalError", "Keyword", "Launch", "NothingProved", "Numerics", "Report", "Results",
           "assert_close", "assert_grads_close", "bounds", "certify", "configurations", "count", "emulated_gpu", "problem",
           "reference", "regime", "replay"]
