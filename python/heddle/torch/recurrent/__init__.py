"""LSTM and GRU as operators with gradients (heddle.torch.prepare)."""
