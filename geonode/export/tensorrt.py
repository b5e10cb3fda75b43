"""Which operators TensorRT lists: to say before any engine is built what it would not take.

Source: docs/operators.md of onnx/onnx-tensorrt at commit 009d6541b4ee1fa3f3150cd7cbabe7e56aa54840, for TensorRT 8.4
(opset 13); only the names are compared. TensorRT casts DOUBLE down to FLOAT, so that what the full graph computes in
float64 loses its digits there: the table of ``--distill`` hardly needs them. Nothing here was run on TensorRT.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import onnx

SUPPORTED = frozenset(
    """
    Abs Acos Acosh Add And ArgMax ArgMin Asin Asinh Atan Atanh AveragePool BatchNormalization Cast Ceil Celu Clip
    Concat Constant ConstantOfShape Conv ConvTranspose Cos Cosh CumSum DepthToSpace DequantizeLinear Div Dropout Einsum
    Elu Equal Erf Exp Expand EyeLike Flatten Floor Gather GatherElements GatherND Gemm GlobalAveragePool GlobalLpPool
    GlobalMaxPool Greater GreaterOrEqual GRU HardSigmoid Identity If ImageScaler InstanceNormalization IsNaN LeakyRelu
    Less LessOrEqual Log LogSoftmax Loop LRN LSTM LpNormalization LpPool MatMul Max MaxPool Mean Min Mul Neg
    NonMaxSuppression Not Or Pad ParametricSoftplus Pow PRelu QuantizeLinear RandomUniform RandomUniformLike Range
    ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum ReduceSumSquare
    Relu Reshape Resize ReverseSequence RNN Round ScaledTanh Scan Scatter ScatterElements ScatterND Selu Shape Sigmoid
    Sign Sin Sinh Size Slice Softmax Softplus Softsign SpaceToDepth Split Sqrt Squeeze Sub Sum Tan Tanh ThresholdedRelu
    Tile TopK Transpose Unsqueeze Upsample Where Xor
    """.split()  # noqa: SIM905 - a hundred quoted lines say no more
)


def unsupported(model: onnx.ModelProto) -> list[str]:
    """Operators of the graph that TensorRT does not list, sorted."""
    return sorted({node.op_type for node in model.graph.node} - SUPPORTED)
