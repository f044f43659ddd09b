"""The service: an ONNX file uploaded in a browser or by its API, optimized and proven by a worker, and fetched again."""
