#!/usr/bin/env python3
"""Runs ten small kernels in Triton and prints what came out, a JSON record a line; see --help."""
import base64
import hashlib
import json
import os
import re
import sys

USAGE = """\
usage: triton_golden.py device             on the first CUDA device
       triton_golden.py emulated [TARGET]  on the executor of PTX, for sm_90 or the target
A record has the kernel, the target, Triton's version, the digest of the PTX without its debugging
information, approximate instructions in it, and each output's type, shape, digest and bits in base64.
Emulated, it has the bytes that were read and written, too; on a device a profiler counts them
(`ci/on-device run --step triton`).
Exit codes: 0 done, 2 bad words, 77 no Triton or PyTorch, or no device.
"""
SKIPPED = 77
PTX_VERSION = 86  # the executor's: with another one Triton may compile otherwise
# Lines that depend on the folder of the source, and no instruction.
DEBUGGING = re.compile(r"^\s*(\.loc|\.file|//|\$L__tmp)|^\s*$")
APPROXIMATE = re.compile(r"^\s*(?:@\S+\s+)?(\w+\.(?:approx|full)\S*)", re.M)


def stop(message, status=2):
    print(f"triton_golden.py: {message}", file=sys.stderr)
    sys.exit(status)


def instructions(ptx):
    """Returns the lines of a PTX that say what is executed."""
    text = re.sub(r"//.*", "", ptx.partition(".section")[0])
    return "\n".join(line.rstrip() for line in text.splitlines() if not DEBUGGING.match(line))


def output_of(array):
    raw = array.tobytes()
    return {"dtype": array.dtype.name, "shape": list(array.shape), "sha256": hashlib.sha256(raw).hexdigest(),
            "bits": base64.b64encode(raw).decode()}


def record(name, target, ptx, outputs):
    import triton
    text = instructions(ptx)
    return {"kernel": name, "target": target, "triton": triton.__version__,
            "ptx": hashlib.sha256(text.encode()).hexdigest(),
            "approximations": sorted(set(APPROXIMATE.findall(text))),
            "outputs": {name: output_of(array) for name, array in outputs.items()}}


def run(launch, hand_over):
    """Launches on what is made of each array; returns the compiled kernel and what was made of outputs."""
    inputs, outputs = ({name: hand_over(array) for name, array in some.items()}
                       for some in (launch.inputs, launch.outputs))
    return launch.kernel[launch.grid](*inputs.values(), *outputs.values(), **launch.options,
                                      ptx_version=PTX_VERSION), outputs


def on_device():
    import torch
    from golden_kernels import launches
    if not torch.cuda.is_available():
        stop("skipped: no CUDA device", SKIPPED)
    target = "sm_{}{}".format(*torch.cuda.get_device_capability())
    for name, launch in launches().items():
        compiled, outputs = run(launch, lambda array: torch.from_numpy(array).cuda())
        ptx = compiled.asm["ptx"]
        yield record(name, target, ptx.decode() if isinstance(ptx, bytes) else ptx,  # bytes where it is emulated
                     {key: tensor.cpu().numpy() for key, tensor in outputs.items()})


def emulated(target):
    import attest
    from golden_kernels import launches
    for name, launch in launches().items():
        with attest.emulated_gpu(target) as gpu:
            run(launch, gpu.array)
        made, = gpu.launches
        arrays = {**launch.inputs, **launch.outputs}
        moved = {f"{what}_bytes": sum(words * arrays[key].itemsize
                                      for key, words in getattr(made, what).items())
                 for what in ("read", "written")}
        yield {**record(name, target, made.ptx, launch.outputs), "moved": moved}


def main(words):
    if words in (["-h"], ["--help"]):
        print(USAGE, end="")
        return 0
    if words[:1] not in (["device"], ["emulated"]) or len(words) > (1 if words[0] == "device" else 2):
        print(USAGE, end="", file=sys.stderr)
        return 2
    sys.dont_write_bytecode = True  # the tree stays as it is
    os.environ.pop("TRITON_INTERPRET", None)
    try:
        for row in on_device() if words[0] == "device" else emulated(*words[1:] or ["sm_90"]):
            print(json.dumps(row), flush=True)
    except ImportError as missing:
        stop(f"skipped: {missing}", SKIPPED)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
