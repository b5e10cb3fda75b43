"""A fitted model outside Python and torch: ONNX, quantised, distilled, and as a `torch.export` package.

Names load on first use: onnx, onnxscript and onnxruntime (the extra ``export``) are needed only by those that use them.
"""
