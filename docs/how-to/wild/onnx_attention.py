"""Certifies ONNX Runtime on the CPU: Attention of opset 23, and its own MultiHeadAttention."""
import functools

import attest
import numpy as np
import onnxruntime
from onnx import TensorProto, helper


@functools.lru_cache(maxsize=None)
def session(operator, domain, inputs, attributes):
    """Makes a session of one node; scale, softcap and masking are attributes of it."""
    node = helper.make_node(operator, list(inputs), ["out"], domain=domain, **dict(attributes))
    kinds = {"mask": TensorProto.BOOL}
    graph = helper.make_graph(
        [node], operator,
        [helper.make_tensor_value_info(name, kinds.get(name, TensorProto.FLOAT), None)
         for name in inputs], [helper.make_tensor_value_info("out", TensorProto.FLOAT, None)])
    versions = [helper.make_opsetid("", 23), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=versions, ir_version=11)
    return onnxruntime.InferenceSession(model.SerializeToString(),
                                        providers=["CPUExecutionProvider"])


def attention(q, k, v, *, is_causal=False, scale=1.0, softcap=0.0, mask=None):
    """Calls Attention with (batch, heads, seqlen, head_dim)."""
    given = {"q": q, "k": k, "v": v, **({} if mask is None else {"mask": mask})}
    asked = (("is_causal", int(is_causal)), ("scale", scale), ("softcap", softcap))
    return session("Attention", "", tuple(given), asked).run(
        None, {name: np.ascontiguousarray(array) for name, array in given.items()})[0]


def multi_head(q, k, v, *, causal=False):
    """Calls MultiHeadAttention with (batch, seqlen, heads, head_dim), heads beside each other."""
    if k.shape[2] != q.shape[2]:
        raise NotImplementedError("MultiHeadAttention has no grouped heads")
    asked = (("num_heads", q.shape[2]), ("unidirectional", int(causal)))
    flat = {name: np.ascontiguousarray(array.reshape(*array.shape[:2], -1))
            for name, array in (("q", q), ("k", k), ("v", v))}
    out = session("MultiHeadAttention", "com.microsoft", ("q", "k", "v"), asked).run(None, flat)[0]
    return out.reshape(*q.shape[:3], v.shape[3])


LIKE = attest.Convention(arrays="numpy", layout="bhsd", align="top_left", keywords={
    "is_causal": attest.Keyword("causal", lambda asked: asked.causal and asked.mask is None),
    "mask": attest.Keyword("boolean_mask", lambda asked: asked.visible),
    "softcap": attest.Keyword("softcap", lambda asked: asked.softcap),
    "scale": attest.Keyword("any_scale", lambda asked: asked.scale)})

MULTI_HEAD = attest.Convention(arrays="numpy", layout="bshd", align="top_left", keywords={
    "causal": attest.Keyword("causal", lambda asked: asked.causal)})

SUBJECTS = {
    "ONNX Runtime Attention, f32": {"fn": attention, "like": LIKE, "dtypes": ["f32"]},
    "ONNX Runtime MultiHeadAttention, f32": {
        "fn": multi_head, "like": MULTI_HEAD, "dtypes": ["f32"]},
    "ONNX Runtime MultiHeadAttention, f32, equal lengths": {
        "fn": multi_head, "like": MULTI_HEAD, "dtypes": ["f32"], "claims": ["causal", "head_dim_v"]},
}
