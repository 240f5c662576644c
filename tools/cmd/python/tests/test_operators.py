"""Numbers of operators at sizes other than those of the export, beside PyTorch."""
import pytest
import torch
import torch.nn.functional as F

import aton


def compare(function, args, others, **options):
    p = aton.export(function, args, dynamo=False, **options)
    for given in (args, others):
        torch.testing.assert_close(p(*given)[0], function(*given))
    return p


def test_repeats_for_all():
    x, y = torch.randn(2, 3), torch.randn(2, 5)
    axes = {"x": {1: "w"}, "times": {0: "r"}}
    for others in ((y, torch.tensor([2])), (y, torch.tensor([1, 0, 3, 2, 1]))):
        compare(lambda x, times: torch.repeat_interleave(x, times, dim=1), (x, torch.tensor([4])), others, dynamic_axes=axes)


def test_weights_of_a_loss():
    x, y = torch.randn(3, 4), torch.rand(3, 4)
    weight = torch.tensor([3])
    compare(lambda x, y: F.binary_cross_entropy_with_logits(x, y, weight=weight, pos_weight=weight + 1), (x, y), (y, x.abs()))


def test_weight_norm_over_an_axis_from_the_end():
    model = torch.nn.utils.weight_norm(torch.nn.Conv1d(2, 3, 4), dim=-2).eval()
    compare(model, (torch.randn(1, 2, 5),), (torch.randn(1, 2, 5),))


@pytest.mark.skipif(int(torch.__version__.split(".")[0]) > 1, reason="PyTorch refuses such a source")
def test_index_add_spreads_its_source():
    index, source = torch.tensor([0, 2]), torch.randn(1, 2, 1)
    compare(lambda x: x.index_add(1, index, source), (torch.randn(3, 4, 5),), (torch.randn(3, 4, 5),))


def test_axes_that_are_not_dynamic():
    model = torch.nn.Linear(3, 4).eval()
    p = compare(model, (torch.randn(2, 3),), (torch.randn(5, 3),), input_names=["x"], output_names=["y"], dynamic_axes={"x": {0: "n", 1: "h"}, "y": {0: "n", 1: "k"}})
    assert [d.id for d in p.warnings].count("axis-size") == 2 and p.result["inputs"][0]["type"] == "Float(n, 3)"


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize("last", [True, False])
def test_bags_that_end_before_the_indices(mode, last):
    if mode == "max" and last and torch.__version__.startswith("1."):
        pytest.skip("PyTorch 1.13 writes behind its memory")
    model = torch.nn.EmbeddingBag(10, 4, mode=mode, include_last_offset=last).eval()
    indices = torch.arange(7)
    compare(model, (indices, torch.tensor([0, 2, 5, 6])), (indices + 1, torch.tensor([0, 1, 1, 3])))
