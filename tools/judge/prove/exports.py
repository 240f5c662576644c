"""Makes the models of exports.tsv that no package of this repository has: python exports.py FOLDER."""

import pathlib
import sys

import torch
import torchvision
from transformers import BertConfig, BertModel


class Bert(torch.nn.Module):
    def __init__(self):
        super().__init__()
        config = BertConfig(hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=128, vocab_size=100)
        self.bert = BertModel(config)

    def forward(self, ids, mask):
        return self.bert(input_ids=ids, attention_mask=mask).last_hidden_state


def main(folder):
    folder.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(0)
    image = torch.randn(1, 3, 64, 64)
    models = {
        "resnet18": (torchvision.models.resnet18(), (image,)),
        "mobilenet_v3_small": (torchvision.models.mobilenet_v3_small(), (image,)),
        "vit": (torchvision.models.VisionTransformer(32, 8, 2, 4, 32, 64), (torch.randn(1, 3, 32, 32),)),
        "bert": (Bert(), (torch.randint(0, 100, (1, 7)), torch.ones(1, 7, dtype=torch.int64))),
    }
    for name, (model, inputs) in models.items():
        torch.export.save(torch.export.export(model.eval(), inputs), folder / f"{name}.pt2")


main(pathlib.Path(sys.argv[1]))
