"""An LSTM over sequences of several lengths: packed, so that the backward direction begins at the end of each."""
import onnxruntime
import torch
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

import aton

torch.manual_seed(0)


class Tagger(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = torch.nn.LSTM(6, 8, num_layers=2, bidirectional=True, batch_first=True)
        self.linear = torch.nn.Linear(16, 3)

    def forward(self, x, lengths):
        packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        y, (h, _) = self.lstm(packed)
        y, _ = pad_packed_sequence(y, batch_first=True)
        return self.linear(y), h


model = Tagger().eval()
program = aton.export(model, (torch.randn(3, 7, 6), torch.tensor([7, 2, 5])), "lstm.onnx", input_names=["x", "lengths"], output_names=["tags", "state"],
                      dynamic_axes={"x": {0: "batch", 1: "length"}, "lengths": {0: "batch"}})

session = onnxruntime.InferenceSession("lstm.onnx")
for lengths in ([4, 9], [1, 3, 2, 5]):
    x, lengths = torch.randn(len(lengths), max(lengths), 6), torch.tensor(lengths)
    tags, state = session.run(None, {"x": x.numpy(), "lengths": lengths.numpy()})
    want, h = model(x, lengths)
    torch.testing.assert_close(torch.from_numpy(tags), want.detach(), rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(torch.from_numpy(state), h.detach(), rtol=1e-4, atol=1e-5)
print(f"lstm: from a {program.source}, right for two lengths and for four")
