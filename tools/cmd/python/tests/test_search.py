"""GreedySearch and BeamSearch of onnxruntime, whose decoder is a graph: the same tokens before and after."""
import subprocess

import numpy as np
import pytest

HEADS, SIZE, WORDS, LAYERS = 2, 4, 12, 2
WIDTH = HEADS * SIZE
FLAGS = [[], ["--opset", "11"], ["--opset", "22"], ["--float16"], ["--ort-operators"]]


def decoder(onnx, seed):
    """A decoder as onnxruntime takes it for GPT-2: tokens, positions, a mask and keys and values go in, logits and keys and values come out."""
    make, kinds, rng = onnx.helper, onnx.TensorProto, np.random.default_rng(seed)
    nodes, weights = [], []

    def node(op, inputs, output, **attrs):
        nodes.append(make.make_node(op, inputs, [output], **attrs))
        return output

    def weight(name, array):
        weights.append(onnx.numpy_helper.from_array(np.asarray(array), name))
        return name

    def random(name, *shape):
        return weight(name, rng.standard_normal(shape).astype(np.float32))

    heads, rows = weight("heads", np.array([0, 0, HEADS, SIZE])), weight("rows", np.array([0, 0, WIDTH]))
    first, one = weight("first", np.array([0])), weight("one", np.float32(1))
    at = [weight("at0", np.array(0)), weight("at1", np.array(1))]
    x = node("Add", [node("Gather", [random("words", WORDS, WIDTH), "input_ids"], "word"),
                     node("Gather", [random("places", 16, WIDTH), "position_ids"], "place")], "x")
    hidden = node("Sub", [one, node("Cast", ["attention_mask"], "seen", to=kinds.FLOAT)], "hidden")
    mask = node("Unsqueeze", [node("Mul", [hidden, weight("far", np.float32(-1e4))], "away"), weight("axes", np.array([1, 2]))], "mask")
    for l in range(LAYERS):
        parts = {}
        for i, name in enumerate("qkv"):
            y = node("MatMul", [x, random(f"w{name}{l}", WIDTH, WIDTH)], f"{name}0{l}")
            y = node("Transpose", [node("Reshape", [y, heads], f"{name}1{l}")], f"{name}2{l}", perm=[0, 2, 1, 3])
            if i > 0:
                y = node("Concat", [node("Gather", [f"past_{l}", at[i - 1]], f"{name}3{l}", axis=0), y], f"{name}4{l}", axis=2)
            parts[name] = y
        both = [node("Unsqueeze", [parts[n], first], f"{n}5{l}") for n in "kv"]
        node("Concat", both, f"present_{l}", axis=0)
        turned = node("Transpose", [parts["k"]], f"kt{l}", perm=[0, 1, 3, 2])
        scores = node("Softmax", [node("Add", [node("MatMul", [parts["q"], turned], f"s0{l}"), mask], f"s1{l}")], f"s2{l}", axis=-1)
        y = node("Transpose", [node("MatMul", [scores, parts["v"]], f"o0{l}")], f"o1{l}", perm=[0, 2, 1, 3])
        x = node("Add", [x, node("Reshape", [y, rows], f"o2{l}")], f"x{l}")
    node("MatMul", [x, random("back", WIDTH, WORDS)], "logits")
    info = make.make_tensor_value_info
    ids = [info(n, kinds.INT32, ["batch", s]) for n, s in (("input_ids", "seq"), ("position_ids", "seq"), ("attention_mask", "total"))]
    caches = [[info(f"{n}_{l}", kinds.FLOAT, [2, "batch", HEADS, s, SIZE]) for l in range(LAYERS)] for n, s in (("past", "past"), ("present", "total"))]
    return make.make_graph(nodes, "decoder", ids + caches[0], [info("logits", kinds.FLOAT, ["batch", "seq", WORDS])] + caches[1], weights)


def search(onnx, kind, graphs):
    make, kinds = onnx.helper, onnx.TensorProto
    numbers = {"max_length": 9, "min_length": 1}
    if kind == "BeamSearch":
        numbers |= {"num_beams": 3, "num_return": 2, "length_penalty": 1.0}
    numbers |= {"repetition_penalty": 1.2}
    weights = [onnx.numpy_helper.from_array(np.array([v], np.float32 if isinstance(v, float) else np.int32), n) for n, v in numbers.items()]
    bodies = {name: decoder(onnx, seed) for seed, name in enumerate(graphs)}
    node = make.make_node(kind, ["input_ids", *numbers], ["tokens"], domain="com.microsoft", model_type=0, eos_token_id=11, pad_token_id=11, **bodies)
    sizes = ["batch", "returned", "length"] if kind == "BeamSearch" else ["batch", "length"]
    graph = make.make_graph([node], "search", [make.make_tensor_value_info("input_ids", kinds.INT32, ["batch", "seq"])],
                            [make.make_tensor_value_info("tokens", kinds.INT32, sizes)], weights)
    return make.make_model(graph, ir_version=8, opset_imports=[make.make_opsetid("", 13), make.make_opsetid("com.microsoft", 1)])


@pytest.mark.parametrize("kind, graphs", [("GreedySearch", ["decoder"]), ("BeamSearch", ["decoder"]), ("GreedySearch", ["init_decoder", "decoder"])])
def test_same_tokens(kind, graphs, tmp_path):
    onnx, onnxruntime = pytest.importorskip("onnx"), pytest.importorskip("onnxruntime")
    import aton
    file, out = tmp_path / "search.onnx", tmp_path / "out.onnx"
    onnx.save(search(onnx, kind, graphs), str(file))

    def tokens(path):
        return onnxruntime.InferenceSession(str(path)).run(None, {"input_ids": np.array([[1, 2, 3], [4, 5, 6]], np.int32)})[0]

    want = tokens(file)
    for flags in FLAGS:
        subprocess.run([aton.find_binary(), "export", str(file), "-o", str(out), *flags], check=True)
        assert np.array_equal(tokens(out), want), flags
