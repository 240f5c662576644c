"""Small models of the libraries that people deploy, one program each: name, module, and inputs at two sizes.

A model's inputs are written as `name: sizes`, where a capital is an axis with two sizes (`x: B 3 H W`); `i9` before the sizes are integers below 9,
`u` is uniform between 0 and 1, `b` is bool; without, the input is normal. A library that does not import leaves its models not made.
"""
import contextlib
import importlib
import sys

import torch

import programs

programs.TOLERANCE = 1e-4  # of the greatest element: score.py --tolerance
SOURCES = ("pt2", "trace", "script")
MODELS = {}
SIZES = {"B": (2, 3), "H": (64, 96), "W": (64, 128), "T": (16, 24), "N": (20, 28), "S": (4000, 6400)}


def model(name, *inputs, **sizes):
    """Registers what gives a module, under `library.name`."""
    def register(f):
        MODELS[name] = (f, inputs, {**SIZES, **sizes})
        return f
    return register


class Call(torch.nn.Module):
    """A module called in a way of its own; what it gives, as a tuple of the tensors in it."""

    def __init__(self, module, call=None):
        super().__init__()
        self.module, self.call = module, call

    def forward(self, *tensors):
        out = self.call(self.module, *tensors) if self.call else self.module(*tensors)
        return tuple(t for t in torch.utils._pytree.tree_leaves(values(out)) if isinstance(t, torch.Tensor))


class Images(torch.nn.Module):
    """A detector, which takes a list of images."""

    def __init__(self, module):
        super().__init__()
        self.module = module

    def forward(self, x: torch.Tensor):
        return self.module([x])


def values(out):
    """Classes of results, as lists of what they hold."""
    if isinstance(out, dict):
        return {k: values(v) for k, v in out.items()}
    if isinstance(out, (list, tuple)):
        return [values(v) for v in out]
    if hasattr(out, "__dataclass_fields__"):
        return [values(getattr(out, k)) for k in out.__dataclass_fields__]
    return out


def draw(module):
    """Leaves what the library drew, but for what has no effect so: statistics of 0 and 1, scales of one value, matrices of zeros."""
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for m in module.modules():
            if getattr(m, "running_mean", None) is not None:
                m.running_mean.uniform_(-0.2, 0.2, generator=generator)
                m.running_var.uniform_(0.5, 1.5, generator=generator)
        for p in module.parameters():
            if not p.requires_grad or not p.is_floating_point() or p.numel() < 2 or not bool((p == p.flatten()[0]).all()):
                continue
            if p.dim() >= 2:
                p.normal_(0, p[0].numel() ** -0.5, generator=generator)
            else:
                low, high = (0.8, 1.2) if p.flatten()[0] == 1 else (-0.1, 0.1)
                p.uniform_(low, high, generator=generator)
    return module


def tensor(spec, sizes, which, seed):
    """(name, tensor, named axes) of an input as it is written above."""
    name, rest = [s.strip() for s in spec.split(":")]
    words = rest.split()
    kind = words.pop(0) if words and words[0][0] in "iub" else ""
    shape = [sizes[w][which] if w in sizes else int(w) for w in words]
    generator = torch.Generator().manual_seed(seed)
    if kind.startswith("i"):
        t = torch.randint(int(kind[1:]), shape, generator=generator)
    elif kind == "b":
        t = torch.rand(shape, generator=generator) < 0.7
    elif kind == "u":
        t = torch.rand(shape, generator=generator)
    else:
        t = torch.randn(shape, generator=generator)
    return name, t, {i: w for i, w in enumerate(words) if w in sizes}


def models():
    return sorted(MODELS)


def make(name):
    """(programs, None) of a model."""
    build, inputs, sizes = MODELS[name]
    torch.manual_seed(0)
    with contextlib.suppress(ImportError):  # brings distutils, which some still import
        importlib.import_module("setuptools")
    with contextlib.suppress(ImportError):  # a build for another CUDA: nothing here runs on one
        cuda, torch.version.cuda = torch.version.cuda, None
        importlib.import_module("torchaudio")
        torch.version.cuda = cuda
    built = build()
    module, call = built if isinstance(built, tuple) else (built, None)
    if call is Images:
        module, call = Images(module), None
    draw(module).eval()
    for p in module.parameters():
        p.requires_grad_(False)
    samples, axes = [], []
    for which in (0, 1):
        made = [tensor(s, sizes, which, 10 * which + i) for i, s in enumerate(inputs)]
        samples.append([t for _, t, _ in made])
        axes = [a for _, _, a in made]
    names = [n for n, _, _ in made]
    with torch.no_grad():
        plain = None if call else module(*programs.clone(samples[0]))
    bare = isinstance(plain, torch.Tensor) or isinstance(plain, tuple) and all(isinstance(t, torch.Tensor) for t in plain)
    if not any(axes):
        samples = samples[:1]
    p = programs.Program("forward", module if bare else Call(module, call), names, samples, axes, None)
    if call is None:
        p.script = module
    p.output_names = [f"out{i}" for i in range(len(p.outputs[0]))]
    return [p], None


def patched():
    return contextlib.nullcontext()


# torchvision


def vision(name, **how):
    return lambda: getattr(importlib.import_module("torchvision.models" + (f".{how.pop('of')}" if "of" in how else "")), name)(weights=None, **how)


for _n in ["deeplabv3_mobilenet_v3_large", "lraspp_mobilenet_v3_large", "fcn_resnet50"]:
    model(f"torchvision.{_n}", "x: B 3 H W")(vision(_n, of="segmentation", num_classes=5, **({} if "lraspp" in _n else {"aux_loss": False}), weights_backbone=None))
for _n in ["fasterrcnn_mobilenet_v3_large_320_fpn", "retinanet_resnet50_fpn", "ssdlite320_mobilenet_v3_large", "fcos_resnet50_fpn", "maskrcnn_resnet50_fpn", "keypointrcnn_resnet50_fpn"]:
    model(f"torchvision.{_n}", "x: u 3 H W")(lambda _n=_n: (vision(_n, of="detection", weights_backbone=None, **({} if "keypoint" in _n else {"num_classes": 5}), **({} if "ssd" in _n else {"min_size": 96, "max_size": 160}))(), Images))
model("torchvision.r2plus1d_18", "x: B 3 8 H W", H=(32, 48), W=(32, 48))(vision("r2plus1d_18", of="video", num_classes=5))
model("torchvision.s3d", "x: B 3 16 224 224", B=(1, 2))(vision("s3d", of="video", num_classes=5))
model("torchvision.mvit_v2_s", "x: B 3 16 224 224", B=(1, 2))(vision("mvit_v2_s", of="video", num_classes=5))
model("torchvision.swin3d_t", "x: 1 3 4 64 64")(vision("swin3d_t", of="video", num_classes=5))
model("torchvision.raft_small", "a: u B 3 H W", "b: u B 3 H W", B=(1, 2), H=(128, 144), W=(128, 160))(lambda: (vision("raft_small", of="optical_flow")(), lambda m, a, b: m(a, b, num_flow_updates=2)[-1]))
for _n in ["googlenet", "inception_v3"]:
    model(f"torchvision.{_n}", "x: B 3 H W", H=(96, 128), W=(96, 160))(vision(_n, num_classes=5, aux_logits=False, init_weights=False))
for _n in ["squeezenet1_1", "shufflenet_v2_x0_5", "mnasnet0_5", "mobilenet_v2", "regnet_x_400mf", "efficientnet_b0"]:
    model(f"torchvision.{_n}", "x: B 3 H W")(vision(_n, num_classes=5))
model("torchvision.maxvit_t", "x: B 3 224 224", B=(1, 2))(vision("maxvit_t", num_classes=5))

# ultralytics

for _n, _c in [("yolov5n", "Detection"), ("yolov8n", "Detection"), ("yolov9t", "Detection"), ("yolov10n", "Detection"), ("yolo11n", "Detection"), ("yolo12n", "Detection"), ("yolov8n-seg", "Segmentation"),
               ("yolo11n-pose", "Pose"), ("yolo11n-obb", "OBB"), ("yolov8n-cls", "Classification"), ("rtdetr-resnet50", "RTDETRDetection"), ("yolov3-tiny", "Detection"), ("yolo26n", "Detection")]:
    def _f(_n=_n, _c=_c):
        from ultralytics.nn import tasks
        return getattr(tasks, _c + "Model")(_n + ".yaml", verbose=False)
    model(f"ultralytics.{_n}", "x: u B 3 H W")(_f)

# segmentation_models_pytorch

for _n in ["Unet", "UnetPlusPlus", "MAnet", "Linknet", "FPN", "PSPNet", "PAN", "DeepLabV3", "DeepLabV3Plus", "UPerNet", "Segformer", "DPT"]:
    def _f(_n=_n):
        import segmentation_models_pytorch as smp
        if _n == "DPT":
            return smp.DPT(encoder_name="tu-vit_tiny_patch16_224", encoder_weights=None, classes=2, dynamic_img_size=True)
        return getattr(smp, _n)(encoder_name="resnet18", encoder_weights=None, classes=2)
    model(f"smp.{_n}", "x: B 3 H W", H=(128, 256), W=(128, 192))(_f)

# diffusers


def diffusion(cls, call=None, **how):
    def f():
        import diffusers
        return getattr(diffusers, cls)(**how), call or (lambda m, *a: m(*a, return_dict=False)[0])
    return f


_small = dict(block_out_channels=(32, 64), layers_per_block=1, norm_num_groups=8)
model("diffusers.UNet2DModel", "x: B 4 H W", "t: i999 B", H=(16, 24), W=(16, 32))(diffusion("UNet2DModel", sample_size=16, in_channels=4, out_channels=4, down_block_types=("DownBlock2D", "AttnDownBlock2D"), up_block_types=("AttnUpBlock2D", "UpBlock2D"), attention_head_dim=8, **_small))
model("diffusers.UNet2DConditionModel", "x: B 4 H W", "t: i999 B", "c: B T 32", H=(16, 24), W=(16, 32))(diffusion("UNet2DConditionModel", sample_size=16, down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"), up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"), cross_attention_dim=32, attention_head_dim=8, **_small))
model("diffusers.UNet1DModel", "x: B 8 T", "t: i999 B", T=(32, 48))(diffusion("UNet1DModel", sample_size=32, in_channels=8, out_channels=8, block_out_channels=(32, 64, 128), extra_in_channels=16))
model("diffusers.UNet3DConditionModel", "x: B 4 4 H W", "t: i999 B", "c: B T 32", H=(16, 24), W=(16, 32))(diffusion("UNet3DConditionModel", sample_size=16, down_block_types=("CrossAttnDownBlock3D", "DownBlock3D"), up_block_types=("UpBlock3D", "CrossAttnUpBlock3D"), cross_attention_dim=32, attention_head_dim=8, **_small))
model("diffusers.UNetMotionModel", "x: B 4 4 H W", "t: i999 B", "c: B T 32", H=(16, 24), W=(16, 32))(diffusion("UNetMotionModel", sample_size=16, down_block_types=("CrossAttnDownBlockMotion", "DownBlockMotion"), up_block_types=("UpBlockMotion", "CrossAttnUpBlockMotion"), cross_attention_dim=32, num_attention_heads=4, motion_num_attention_heads=4, **_small))
model("diffusers.UNetSpatioTemporalConditionModel", "x: B 4 8 H W", "t: i999 B", "c: B 1 32", "ids: B 3", H=(16, 24), W=(16, 32))(diffusion("UNetSpatioTemporalConditionModel", sample_size=16, block_out_channels=(32, 64), layers_per_block=1, down_block_types=("CrossAttnDownBlockSpatioTemporal", "DownBlockSpatioTemporal"), up_block_types=("UpBlockSpatioTemporal", "CrossAttnUpBlockSpatioTemporal"), cross_attention_dim=32, num_attention_heads=8, projection_class_embeddings_input_dim=96, addition_time_embed_dim=32))
model("diffusers.AutoencoderKL", "x: B 3 H W")(diffusion("AutoencoderKL", lambda m, x: m(x, sample_posterior=False, return_dict=False)[0], down_block_types=("DownEncoderBlock2D",) * 2, up_block_types=("UpDecoderBlock2D",) * 2, **_small))
model("diffusers.VQModel", "x: B 3 H W")(diffusion("VQModel", block_out_channels=(32, 64), norm_num_groups=8, num_vq_embeddings=64, latent_channels=3, down_block_types=("DownEncoderBlock2D",) * 2, up_block_types=("UpDecoderBlock2D",) * 2))
model("diffusers.AutoencoderTiny", "x: B 3 H W")(diffusion("AutoencoderTiny", encoder_block_out_channels=(16, 16), decoder_block_out_channels=(16, 16), num_encoder_blocks=(1, 1), num_decoder_blocks=(1, 1)))
model("diffusers.AutoencoderKLTemporalDecoder", "x: 4 3 H W", H=(32, 48), W=(32, 64))(diffusion("AutoencoderKLTemporalDecoder", lambda m, x: m(x, sample_posterior=False, num_frames=2, return_dict=False)[0], block_out_channels=(32, 64), layers_per_block=1, down_block_types=("DownEncoderBlock2D",) * 2))
model("diffusers.AutoencoderOobleck", "x: B 2 S", S=(512, 1024))(diffusion("AutoencoderOobleck", lambda m, x: m(x, sample_posterior=False, return_dict=False)[0], encoder_hidden_size=12, decoder_channels=12, decoder_input_channels=6, audio_channels=2, downsampling_ratios=[2, 4], channel_multiples=[1, 2]))
model("diffusers.AutoencoderDC", "x: B 3 H W")(diffusion("AutoencoderDC", in_channels=3, latent_channels=4, attention_head_dim=8, encoder_block_types=("ResBlock", "EfficientViTBlock"), decoder_block_types=("ResBlock", "EfficientViTBlock"), encoder_block_out_channels=(16, 32), decoder_block_out_channels=(16, 32), encoder_qkv_multiscales=((), (5,)), decoder_qkv_multiscales=((), (5,)), encoder_layers_per_block=(1, 1), decoder_layers_per_block=(1, 1), downsample_block_type="conv", upsample_block_type="interpolate", decoder_norm_types="rms_norm", decoder_act_fns="silu", scaling_factor=0.4))
model("diffusers.AutoencoderKLWan", "x: B 3 9 H W", B=(1, 2), H=(32, 48), W=(32, 64))(diffusion("AutoencoderKLWan", lambda m, x: m(x, sample_posterior=False, return_dict=False)[0], base_dim=8, z_dim=4, dim_mult=[1, 2, 2, 2], num_res_blocks=1, temperal_downsample=[False, True, True]))
model("diffusers.AutoencoderKLCogVideoX", "x: B 3 9 H W", B=(1, 2), H=(32, 48), W=(32, 64))(diffusion("AutoencoderKLCogVideoX", lambda m, x: m(x, sample_posterior=False, return_dict=False)[0], down_block_types=("CogVideoXDownBlock3D",) * 2, up_block_types=("CogVideoXUpBlock3D",) * 2, block_out_channels=(8, 8), layers_per_block=1, norm_num_groups=2, latent_channels=4, temporal_compression_ratio=2))
model("diffusers.ControlNetModel", "x: B 4 H W", "t: i999 B", "c: B T 32", "image: u B 3 128 128", H=(16, 16), W=(16, 16))(diffusion("ControlNetModel", lambda m, *a: m(*a, return_dict=False), down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"), cross_attention_dim=32, attention_head_dim=8, conditioning_embedding_out_channels=(8, 16, 32, 32), **_small))
model("diffusers.T2IAdapter", "x: B 3 H W")(diffusion("T2IAdapter", lambda m, x: m(x), channels=[16, 32], num_res_blocks=1, downscale_factor=8))
model("diffusers.DiTTransformer2DModel", "x: B 4 8 8", "t: i999 B", "y: i9 B")(diffusion("DiTTransformer2DModel", lambda m, x, t, y: m(x, timestep=t, class_labels=y, return_dict=False)[0], num_attention_heads=2, attention_head_dim=8, in_channels=4, out_channels=8, num_layers=2, sample_size=8, patch_size=2, num_embeds_ada_norm=9))
model("diffusers.Transformer2DModel", "x: B 32 H W", "c: B T 16", H=(8, 12), W=(8, 16))(diffusion("Transformer2DModel", lambda m, x, c: m(x, encoder_hidden_states=c, return_dict=False)[0], num_attention_heads=2, attention_head_dim=16, in_channels=32, num_layers=1, cross_attention_dim=16, norm_num_groups=8))
model("diffusers.PixArtTransformer2DModel", "x: B 4 H W", "c: B T 16", "t: i999 B", "mask: b B T", H=(8, 12), W=(8, 16))(diffusion("PixArtTransformer2DModel", lambda m, x, c, t, k: m(x, c, t, {"resolution": None, "aspect_ratio": None}, encoder_attention_mask=k.float(), return_dict=False)[0], num_attention_heads=2, attention_head_dim=8, in_channels=4, out_channels=8, num_layers=2, sample_size=8, patch_size=2, num_embeds_ada_norm=99, cross_attention_dim=16, caption_channels=16, use_additional_conditions=False))
model("diffusers.SD3Transformer2DModel", "x: B 4 H W", "c: B T 32", "p: B 64", "t: i999 B", H=(16, 24), W=(16, 32))(diffusion("SD3Transformer2DModel", sample_size=32, patch_size=1, in_channels=4, out_channels=4, num_layers=2, attention_head_dim=8, num_attention_heads=4, joint_attention_dim=32, caption_projection_dim=32, pooled_projection_dim=64, pos_embed_max_size=96))
model("diffusers.FluxTransformer2DModel", "x: B N 4", "c: B T 32", "p: B 32", "t: u B", "img: i9 N 3", "txt: i9 T 3")(diffusion("FluxTransformer2DModel", lambda m, x, c, p, t, i, j: m(hidden_states=x, encoder_hidden_states=c, pooled_projections=p, timestep=t, img_ids=i, txt_ids=j, return_dict=False)[0], patch_size=1, in_channels=4, num_layers=1, num_single_layers=1, attention_head_dim=16, num_attention_heads=2, joint_attention_dim=32, pooled_projection_dim=32, axes_dims_rope=[4, 4, 8]))
model("diffusers.SanaTransformer2DModel", "x: B 4 H W", "c: B T 8", "t: i999 B", H=(16, 24), W=(16, 32))(diffusion("SanaTransformer2DModel", patch_size=1, in_channels=4, out_channels=4, num_layers=1, attention_head_dim=4, num_attention_heads=2, num_cross_attention_heads=2, cross_attention_head_dim=4, cross_attention_dim=8, caption_channels=8, sample_size=32))
model("diffusers.AuraFlowTransformer2DModel", "x: B 4 H W", "c: B T 16", "t: u B", H=(16, 24), W=(16, 32))(diffusion("AuraFlowTransformer2DModel", sample_size=32, patch_size=2, in_channels=4, num_mmdit_layers=1, num_single_dit_layers=1, attention_head_dim=8, num_attention_heads=4, caption_projection_dim=32, joint_attention_dim=16, out_channels=4, pos_embed_max_size=256))
model("diffusers.CogVideoXTransformer3DModel", "x: B 3 4 8 8", "c: B 8 8", "t: i999 B")(diffusion("CogVideoXTransformer3DModel", num_attention_heads=2, attention_head_dim=8, in_channels=4, out_channels=4, time_embed_dim=2, text_embed_dim=8, num_layers=2, sample_width=8, sample_height=8, sample_frames=9, patch_size=2, temporal_compression_ratio=4, max_text_seq_length=8))
model("diffusers.WanTransformer3DModel", "x: B 16 2 16 16", "t: i999 B", "c: B T 16")(diffusion("WanTransformer3DModel", patch_size=(1, 2, 2), num_attention_heads=2, attention_head_dim=12, in_channels=16, out_channels=16, text_dim=16, freq_dim=256, ffn_dim=32, num_layers=2, cross_attn_norm=True, qk_norm="rms_norm_across_heads", rope_max_seq_len=32))
model("diffusers.HunyuanDiT2DModel", "x: B 4 16 16", "t: i999 B", "c: B 4 8", "m: b B 4", "d: B 4 8", "n: b B 4", "s: 12", "y: i1 B", "r0: 64 4", "r1: 64 4", B=(2, 2))(diffusion("HunyuanDiT2DModel", lambda m, x, t, c, k, d, n, s, y, a, b: m(x, t, encoder_hidden_states=c, text_embedding_mask=k, encoder_hidden_states_t5=d, text_embedding_mask_t5=n, image_meta_size=s, style=y, image_rotary_emb=(a, b), return_dict=False)[0], sample_size=16, num_layers=2, patch_size=2, attention_head_dim=4, num_attention_heads=2, in_channels=4, cross_attention_dim=8, cross_attention_dim_t5=8, pooled_projection_dim=4, hidden_size=8, text_len=4, text_len_t5=4, activation_fn="gelu-approximate"))
model("diffusers.PriorTransformer", "x: B 16", "t: i999 B", "p: B 16", "c: B 7 16", "mask: b B 7")(diffusion("PriorTransformer", num_attention_heads=2, attention_head_dim=8, num_layers=2, embedding_dim=16, num_embeddings=7, additional_embeddings=4))
model("diffusers.StableCascadeUNet", "x: B 4 H W", "r: u B", "c: B 1 16", H=(16, 24), W=(16, 32))(diffusion("StableCascadeUNet", lambda m, x, r, c: m(x, r, clip_text_pooled=c, return_dict=False)[0], in_channels=4, out_channels=4, conditioning_dim=32, block_out_channels=(32, 32), num_attention_heads=(2, 2), down_num_layers_per_block=(1, 1), up_num_layers_per_block=(1, 1), down_blocks_repeat_mappers=(1, 1), up_blocks_repeat_mappers=(1, 1), block_types_per_layer=(("SDCascadeResBlock", "SDCascadeTimestepBlock", "SDCascadeAttnBlock"),) * 2, clip_text_in_channels=16, clip_text_pooled_in_channels=16, clip_image_in_channels=16, clip_seq=2, timestep_ratio_embedding_dim=16, patch_size=1, switch_level=(False,)))
model("diffusers.LTXVideoTransformer3DModel", "x: B 64 4", "c: B T 16", "t: i999 B", "mask: b B T")(diffusion("LTXVideoTransformer3DModel", lambda m, x, c, t, k: m(x, c, t, k.float(), 4, 4, 4, return_dict=False)[0], in_channels=4, out_channels=4, num_attention_heads=2, attention_head_dim=12, cross_attention_dim=24, num_layers=1, caption_channels=16))
model("diffusers.UVit2DModel", "x: i60 B 8 8", "c: B T 32", "p: B 32", "n: B 5")(diffusion("UVit2DModel", lambda m, x, c, p, n: m(x, encoder_hidden_states=c, pooled_text_emb=p, micro_conds=n), hidden_size=32, cond_embed_dim=32, micro_cond_encode_dim=8, micro_cond_embed_dim=40, encoder_hidden_size=32, vocab_size=64, codebook_size=60, in_channels=32, block_out_channels=32, num_res_blocks=1, block_num_heads=2, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64, sample_size=8))

# monai


def medical(cls, *args, **how):
    def f():
        from monai.networks import nets
        return getattr(nets, cls)(*args, **how)
    return f


_3d = {"B": (1, 2), "H": (32, 64), "W": (32, 32)}
model("monai.UNet", "x: B 1 H W W", **_3d)(medical("UNet", spatial_dims=3, in_channels=1, out_channels=2, channels=(4, 8, 16), strides=(2, 2), num_res_units=1))
model("monai.SegResNet", "x: B 1 H W W", **_3d)(medical("SegResNet", spatial_dims=3, in_channels=1, out_channels=2, init_filters=8, blocks_down=(1, 1, 1), blocks_up=(1, 1)))
model("monai.SwinUNETR", "x: B 1 64 64 64", B=(1, 2))(medical("SwinUNETR", in_channels=1, out_channels=2, feature_size=12, depths=(1, 1, 1, 1), num_heads=(1, 2, 2, 2)))
model("monai.UNETR", "x: B 1 32 32 32", **_3d)(medical("UNETR", in_channels=1, out_channels=2, img_size=32, feature_size=4, hidden_size=16, mlp_dim=32, num_heads=2))
model("monai.DynUNet", "x: B 1 H W W", **_3d)(medical("DynUNet", 3, 1, 2, (3, 3, 3), (1, 2, 2), (2, 2), filters=(4, 8, 16)))
model("monai.VNet", "x: B 1 H W W", **_3d)(medical("VNet", spatial_dims=3, in_channels=1, out_channels=2))
model("monai.AttentionUnet", "x: B 1 H W W", **_3d)(medical("AttentionUnet", 3, 1, 2, (4, 8, 16), (2, 2)))
model("monai.HighResNet", "x: B 1 H W W", **_3d)(medical("HighResNet", spatial_dims=3, in_channels=1, out_channels=2))
model("monai.BasicUNetPlusPlus", "x: B 1 H W", H=(32, 64), W=(32, 32))(medical("BasicUNetPlusPlus", spatial_dims=2, in_channels=1, out_channels=2, features=(4, 4, 8, 8, 8, 4)))
model("monai.FlexibleUNet", "x: B 3 H W")(medical("FlexibleUNet", in_channels=3, out_channels=2, backbone="efficientnet-b0"))
model("monai.DenseNet121", "x: B 1 H W W", **_3d)(medical("DenseNet121", spatial_dims=3, in_channels=1, out_channels=2, init_features=8, growth_rate=4, block_config=(1, 1, 1)))
model("monai.ViT", "x: B 1 32 32")(medical("ViT", in_channels=1, img_size=(32, 32), patch_size=(8, 8), hidden_size=16, mlp_dim=32, num_layers=2, num_heads=2, classification=True, num_classes=2, spatial_dims=2))
model("monai.DiffusionModelUNet", "x: B 1 H W", "t: i999 B", H=(16, 24), W=(16, 32))(medical("DiffusionModelUNet", spatial_dims=2, in_channels=1, out_channels=1, num_res_blocks=1, channels=(8, 8), attention_levels=(False, True), norm_num_groups=4, num_head_channels=4))
model("monai.VQVAE", "x: B 1 H W")(medical("VQVAE", spatial_dims=2, in_channels=1, out_channels=1, channels=(8, 8), num_res_channels=(8, 8), num_res_layers=1, downsample_parameters=((2, 4, 1, 1),) * 2, upsample_parameters=((2, 4, 1, 1, 0),) * 2, num_embeddings=16, embedding_dim=8))
model("monai.MedNeXt", "x: B 1 H W W", **_3d)(medical("MedNeXt", spatial_dims=3, init_filters=4, in_channels=1, out_channels=2, blocks_down=(1, 1, 1, 1), blocks_bottleneck=1, blocks_up=(1, 1, 1, 1)))
model("monai.RegUNet", "x: B 2 H W W", **_3d)(medical("RegUNet", spatial_dims=3, in_channels=2, num_channel_initial=4, depth=2, out_channels=3))

# vit-pytorch, x-transformers and their neighbours


def made(module, cls, call=None, **how):
    """A class of a module, with keywords; values that are functions are called."""
    def f():
        built = getattr(importlib.import_module(module), cls)(**{k: v() if callable(v) else v for k, v in how.items()})
        return (built, call) if call else built
    return f


_vit = dict(image_size=64, patch_size=16, num_classes=5, dim=32, depth=2, heads=2, mlp_dim=64)
model("vit_pytorch.ViT", "x: B 3 64 64")(made("vit_pytorch", "ViT", **_vit))
model("vit_pytorch.SimpleViT", "x: B 3 64 64")(made("vit_pytorch", "SimpleViT", **_vit))
model("vit_pytorch.DeepViT", "x: B 3 64 64")(made("vit_pytorch.deepvit", "DeepViT", **_vit))
model("vit_pytorch.CaiT", "x: B 3 64 64")(made("vit_pytorch.cait", "CaiT", **_vit, cls_depth=1))
model("vit_pytorch.T2TViT", "x: B 3 64 64")(made("vit_pytorch.t2t", "T2TViT", dim=32, image_size=64, depth=2, heads=2, mlp_dim=64, num_classes=5, t2t_layers=((7, 4), (3, 2))))
model("vit_pytorch.CCT", "x: B 3 64 64")(made("vit_pytorch.cct", "CCT", img_size=64, embedding_dim=32, n_conv_layers=1, num_layers=2, num_heads=2, mlp_ratio=2., num_classes=5))
model("vit_pytorch.CrossViT", "x: B 3 64 64")(made("vit_pytorch.cross_vit", "CrossViT", image_size=64, sm_patch_size=8, lg_patch_size=16, num_classes=5, depth=1, sm_dim=32, lg_dim=48, sm_enc_depth=1, lg_enc_depth=1))
model("vit_pytorch.PiT", "x: B 3 64 64")(made("vit_pytorch.pit", "PiT", image_size=64, patch_size=8, dim=32, num_classes=5, depth=(1, 1), heads=2, mlp_dim=64))
model("vit_pytorch.LeViT", "x: B 3 224 224")(made("vit_pytorch.levit", "LeViT", image_size=224, num_classes=5, stages=3, dim=(32, 48, 64), depth=1, heads=(2, 3, 4), mlp_mult=2))
model("vit_pytorch.CvT", "x: B 3 H W")(made("vit_pytorch.cvt", "CvT", num_classes=5, s1_emb_dim=16, s2_emb_dim=32, s3_emb_dim=48, s3_depth=1, s2_depth=1))
model("vit_pytorch.TwinsSVT", "x: B 3 224 224")(made("vit_pytorch.twins_svt", "TwinsSVT", num_classes=5, s1_emb_dim=16, s2_emb_dim=32, s3_emb_dim=48, s4_emb_dim=64, s3_depth=1))
model("vit_pytorch.CrossFormer", "x: B 3 224 224")(made("vit_pytorch.crossformer", "CrossFormer", num_classes=5, dim=(32, 64, 96, 128), depth=(1, 1, 1, 1)))
model("vit_pytorch.RegionViT", "x: B 3 224 224")(made("vit_pytorch.regionvit", "RegionViT", dim=(16, 32, 48, 64), depth=(1, 1, 1, 1), window_size=7, num_classes=5))
model("vit_pytorch.ScalableViT", "x: B 3 64 64")(made("vit_pytorch.scalable_vit", "ScalableViT", num_classes=5, dim=16, heads=(2, 2, 2, 2), depth=(1, 1, 1, 1), ssa_dim_key=(8, 8, 8, 8), reduction_factor=(8, 4, 2, 1), window_size=(4, 4, None, None)))
model("vit_pytorch.SepViT", "x: B 3 224 224")(made("vit_pytorch.sep_vit", "SepViT", num_classes=5, dim=16, dim_head=16, heads=(1, 2, 2, 2), depth=(1, 1, 1, 1), window_size=7))
model("vit_pytorch.MaxViT", "x: B 3 224 224")(made("vit_pytorch.max_vit", "MaxViT", num_classes=5, dim_conv_stem=16, dim=16, dim_head=16, depth=(1, 1), window_size=7))
model("vit_pytorch.NesT", "x: B 3 64 64")(made("vit_pytorch.nest", "NesT", image_size=64, patch_size=4, dim=16, heads=2, num_hierarchies=3, block_repeats=(1, 1, 1), num_classes=5))
model("vit_pytorch.MobileViT", "x: B 3 64 64")(made("vit_pytorch.mobile_vit", "MobileViT", image_size=(64, 64), dims=[32, 40, 48], channels=[16, 16, 24, 24, 48, 48, 64, 64, 80, 80, 96], num_classes=5))
model("vit_pytorch.XCiT", "x: B 3 64 64")(made("vit_pytorch.xcit", "XCiT", image_size=64, patch_size=16, num_classes=5, dim=32, depth=2, cls_depth=1, heads=2, mlp_dim=64))
model("vit_pytorch.ViViT", "x: B 3 4 32 32")(made("vit_pytorch.vivit", "ViViT", image_size=32, image_patch_size=8, frames=4, frame_patch_size=2, num_classes=5, dim=32, spatial_depth=1, temporal_depth=1, heads=2, mlp_dim=64))
model("vit_pytorch.RvT", "x: B 3 64 64")(made("vit_pytorch.rvt", "RvT", **_vit))
model("vit_pytorch.NaViT", "a: 3 32 48", "b: 3 64 32")(made("vit_pytorch.na_vit", "NaViT", lambda m, a, b: m([[a, b]]), **_vit))
model("vit_pytorch.PatchMerger", "x: B 3 64 64")(made("vit_pytorch.vit_with_patch_merger", "ViT", **_vit, patch_merge_layer=0, patch_merge_num_tokens=4))

_layers = dict(dim=32, depth=2, heads=2, attn_dim_head=16)
for _n, _how in {"Decoder": {}, "Rotary": dict(rotary_pos_emb=True), "Alibi": dict(alibi_pos_bias=True), "RelPos": dict(rel_pos_bias=True), "Dynamic": dict(dynamic_pos_bias=True), "GLU": dict(ff_glu=True, ff_swish=True, use_rmsnorm=True),
                 "KVHeads": dict(attn_kv_heads=1, attn_qk_norm=True), "Sparse": dict(attn_sparse_topk=4), "Talking": dict(attn_pre_talking_heads=True, attn_post_talking_heads=True), "Macaron": dict(macaron=True, shift_tokens=1), "Sandwich": dict(sandwich_norm=True, gate_residual=True), "Memory": dict(attn_num_mem_kv=4, residual_attn=True), "Xpos": dict(rotary_xpos=True), "Conv": dict(attn_on_attn=True)}.items():
    def _f(_how=_how):
        import x_transformers as xt
        return xt.TransformerWrapper(num_tokens=99, max_seq_len=64, attn_layers=xt.Decoder(**_layers, **_how))
    model(f"x_transformers.{_n}", "ids: i99 B T")(_f)


def _xt_encdec():
    import x_transformers as xt
    return xt.XTransformer(dim=32, enc_num_tokens=99, enc_depth=1, enc_heads=2, enc_max_seq_len=64, dec_num_tokens=99, dec_depth=1, dec_heads=2, dec_max_seq_len=64), lambda m, a, b, k: m.decoder.net(b, context=m.encoder(a, mask=k, return_embeddings=True), context_mask=k)


def _xt_vit():
    import x_transformers as xt
    return xt.ViTransformerWrapper(image_size=32, patch_size=8, num_classes=5, attn_layers=xt.Encoder(**_layers))


def _xt_continuous():
    import x_transformers as xt
    return xt.ContinuousTransformerWrapper(dim_in=8, dim_out=4, max_seq_len=64, attn_layers=xt.Encoder(**_layers)), lambda m, x, k: m(x, mask=k)


model("x_transformers.XTransformer", "a: i99 B N", "b: i99 B T", "mask: b B N")(_xt_encdec)
model("x_transformers.ViTransformerWrapper", "x: B 3 32 32")(_xt_vit)
model("x_transformers.ContinuousTransformerWrapper", "x: B T 8", "mask: b B T")(_xt_continuous)
model("conformer.Conformer", "x: B T 32")(made("conformer", "Conformer", dim=32, depth=2, dim_head=16, heads=2, ff_mult=2, conv_expansion_factor=2, conv_kernel_size=7))
model("linformer.Linformer", "x: B 32 16")(made("linformer", "Linformer", dim=16, seq_len=32, depth=2, heads=2, k=8, one_kv_head=True, share_kv=True))
model("performer_pytorch.Performer", "x: B T 32")(made("performer_pytorch", "Performer", dim=32, depth=1, heads=2, dim_head=16, causal=False, nb_features=16))
model("performer_pytorch.PerformerLM", "ids: i99 B 32")(made("performer_pytorch", "PerformerLM", num_tokens=99, max_seq_len=32, dim=32, depth=1, heads=2, dim_head=16, causal=False, nb_features=16))

# tabular and time series

model("rtdl.MLP", "x: B 8")(made("rtdl_revisiting_models", "MLP", d_in=8, d_out=2, n_blocks=2, d_block=16, dropout=0.1))
model("rtdl.ResNet", "x: B 8")(made("rtdl_revisiting_models", "ResNet", d_in=8, d_out=2, n_blocks=2, d_block=16, d_hidden=None, d_hidden_multiplier=2.0, dropout1=0.1, dropout2=0.0))
model("rtdl.FTTransformer", "x: B 4", "c: i3 B 2")(made("rtdl_revisiting_models", "FTTransformer", n_cont_features=4, cat_cardinalities=[3, 4], d_out=2, n_blocks=2, d_block=16, attention_n_heads=2, attention_dropout=0.1, ffn_d_hidden=None, ffn_d_hidden_multiplier=4 / 3, ffn_dropout=0.1, residual_dropout=0.0))
model("pytorch_tabnet.TabNet", "x: i3 B 8")(made("pytorch_tabnet.tab_network", "TabNet", lambda m, x: m(x.float()), input_dim=8, output_dim=2, n_d=8, n_a=8, n_steps=3, cat_idxs=[0, 1], cat_dims=[3, 3], cat_emb_dim=[2, 2], group_attention_matrix=lambda: torch.eye(8)))
model("pytorch_tabnet.TabNetEntmax", "x: B 8")(made("pytorch_tabnet.tab_network", "TabNet", input_dim=8, output_dim=2, n_d=8, n_a=8, n_steps=3, mask_type="entmax", group_attention_matrix=lambda: torch.eye(8)))
model("tab_transformer.TabTransformer", "c: i3 B 3", "x: B 4")(made("tab_transformer_pytorch", "TabTransformer", categories=(3, 4, 5), num_continuous=4, dim=16, depth=2, heads=2, dim_out=1))
model("tab_transformer.FTTransformer", "c: i3 B 3", "x: B 4")(made("tab_transformer_pytorch", "FTTransformer", categories=(3, 4, 5), num_continuous=4, dim=16, depth=2, heads=2, dim_out=1))
for _n, _in in {"InceptionTimePlus": "T", "XceptionTime": "T", "TSTPlus": "32", "TST": "32", "PatchTST": "32", "LSTM_FCN": "32", "TCN": "T", "OmniScaleCNN": "32", "MiniRocketFeatures": "32", "TSiTPlus": "32", "ResCNN": "T", "gMLP": "32", "RNN_FCN": "32", "XCM": "32", "TSPerceiver": "32"}.items():
    def _f(_n=_n):
        all = importlib.import_module("tsai.models.all")
        if _n == "PatchTST":
            return all.PatchTST(3, 2, 32, pred_dim=8, n_layers=1, n_heads=2, d_model=16, d_ff=32, patch_len=8, stride=4)
        if _n == "MiniRocketFeatures":
            m = importlib.import_module("tsai.models.MINIROCKET_Pytorch").MiniRocketFeatures(3, 32, num_features=168)
            m.fit(torch.randn(8, 3, 32))
            return m
        cls = getattr(all, _n)
        return cls(3, 2) if _n in ("InceptionTimePlus", "XceptionTime", "TCN", "ResCNN") else cls(3, 2, 32)
    model(f"tsai.{_n}", f"x: B 3 {_in}", T=(32, 48))(_f)


def _chronos_bolt():
    from chronos.chronos_bolt import ChronosBoltModelForForecasting
    from transformers import T5Config
    c = T5Config(d_model=32, d_kv=16, d_ff=64, num_layers=1, num_decoder_layers=1, num_heads=2, vocab_size=8, pad_token_id=0, decoder_start_token_id=0, is_encoder_decoder=True, feed_forward_proj="relu")
    c.chronos_config = dict(context_length=64, prediction_length=8, input_patch_size=8, input_patch_stride=8, quantiles=[0.1, 0.5, 0.9], use_reg_token=True)
    return ChronosBoltModelForForecasting(c), lambda m, x: m(context=x).quantile_preds


def _chronos_2():
    from chronos.chronos2 import Chronos2Model
    from chronos.chronos2.config import Chronos2CoreConfig
    c = Chronos2CoreConfig(d_model=32, d_kv=16, d_ff=64, num_layers=1, num_heads=2, chronos_config=dict(context_length=64, output_patch_size=8, input_patch_size=8, input_patch_stride=8, quantiles=[0.1, 0.5, 0.9], use_reg_token=True, max_output_patches=2, time_encoding_scale=64, use_arcsinh=True))
    return Chronos2Model(c), lambda m, x: m(context=x).quantile_preds


model("chronos.ChronosBolt", "x: B T", T=(32, 48))(_chronos_bolt)
model("chronos.Chronos2", "x: B T", T=(32, 48))(_chronos_2)
for _n, _how in {"NBEATS": {}, "NHITS": {}, "DLinear": {}, "NLinear": {}, "TSMixer": dict(n_series=3), "PatchTST": dict(hidden_size=16, n_heads=2, encoder_layers=1, patch_len=4), "TCN": {}, "TiDE": {}, "iTransformer": dict(n_series=3), "Autoformer": dict(hidden_size=16, n_head=2, encoder_layers=1, decoder_layers=1, conv_hidden_size=16), "FEDformer": dict(hidden_size=16, n_head=8, modes=4, encoder_layers=1, decoder_layers=1, conv_hidden_size=16), "Informer": dict(hidden_size=16, n_head=2, encoder_layers=1, decoder_layers=1, conv_hidden_size=16), "TimesNet": dict(hidden_size=8, conv_hidden_size=8, encoder_layers=1), "TFT": dict(hidden_size=16, n_head=2), "BiTCN": {}, "DeepNPTS": {}, "KAN": {}, "SOFTS": dict(n_series=3), "TimeMixer": dict(n_series=3), "TimeXer": dict(n_series=3), "RMoK": dict(n_series=3), "LSTM": {}, "StemGNN": dict(n_series=3)}.items():
    def _f(_n=_n, _how=_how):
        import logging
        logging.disable(logging.CRITICAL)
        nf = importlib.import_module("neuralforecast.models")
        m = getattr(nf, _n)(h=8, input_size=32, max_steps=1, **_how)
        return m, lambda m, y, k: m(dict(insample_y=y, insample_mask=k, futr_exog=None, hist_exog=None, stat_exog=None))
    _s = "3" if "n_series" in _how else "1"
    model(f"neuralforecast.{_n}", f"y: B 32 {_s}", f"mask: u B 32 {_s}")(_f)
model("pytorch_forecasting.NBeatsBlock", "x: B 32")(made("pytorch_forecasting.models.nbeats.sub_modules", "NBEATSSeasonalBlock", units=16, thetas_dim=8, backcast_length=32, forecast_length=8, nb_harmonics=4))
model("pytorch_forecasting.TFTGate", "x: B T 8")(made("pytorch_forecasting.models.temporal_fusion_transformer.sub_modules", "GatedResidualNetwork", input_size=8, hidden_size=16, output_size=4))
model("pytorch_forecasting.InterpretableMultiHeadAttention", "q: B T 16", "k: B T 16", "v: B T 16")(made("pytorch_forecasting.models.temporal_fusion_transformer.sub_modules", "InterpretableMultiHeadAttention", n_head=2, d_model=16))
model("gluonts.DeepAR", "c: i3 B 1", "s: B 1", "t: B 40 2", "y: u B 40", "o: b B 40", "f: B 8 2")(made("gluonts.torch.model.deepar.module", "DeepARModel", lambda m, c, s, t, y, o, f: m.rnn(m.prepare_rnn_input(c, s, t, y, o.float(), f[:, :7])[0])[0], freq="D", context_length=20, prediction_length=8, num_feat_dynamic_real=2, num_feat_static_real=1, num_feat_static_cat=1, cardinality=[3], hidden_size=16, lags_seq=[1, 2, 7]))
model("gluonts.SimpleFeedForward", "x: u B 20")(made("gluonts.torch.model.simple_feedforward.module", "SimpleFeedForwardModel", lambda m, x: m(x), prediction_length=8, context_length=20))
model("gluonts.PatchTST", "x: u B 32", "o: b B 32")(made("gluonts.torch.model.patch_tst.module", "PatchTSTModel", lambda m, x, o: m(x, o.float()), prediction_length=8, context_length=32, num_feat_dynamic_real=0, patch_len=8, stride=4, d_model=16, nhead=2, dim_feedforward=32, dropout=0.1, activation="relu", norm_first=False, num_encoder_layers=1, scaling="mean", padding_patch="end"))
model("gluonts.TFT", "y: u B 20", "o: b B 20", "s: B 1", "c: i3 B 1", "d: B 28 2", "e: i3 B 28 1")(made("gluonts.torch.model.tft.module", "TemporalFusionTransformerModel", lambda m, y, o, s, c, d, e: m(y, o.float(), s, c, d, e), context_length=20, prediction_length=8, d_feat_static_real=[1], c_feat_static_cat=[3], d_feat_dynamic_real=[2], c_feat_dynamic_cat=[3], d_hidden=16, d_var=8, num_heads=2))

# audio and speech

model("torchaudio.MelSpectrogram", "x: B S")(made("torchaudio.transforms", "MelSpectrogram", sample_rate=16000, n_fft=400, n_mels=40))
model("torchaudio.MFCC", "x: B S")(made("torchaudio.transforms", "MFCC", sample_rate=16000, n_mfcc=13, melkwargs=lambda: dict(n_fft=400, n_mels=40)))
model("torchaudio.AmplitudeToDB", "x: u B 8 T")(made("torchaudio.transforms", "AmplitudeToDB", stype="power", top_db=80))
model("torchaudio.Resample", "x: B S")(made("torchaudio.transforms", "Resample", orig_freq=16000, new_freq=8000))
model("torchaudio.GriffinLim", "x: u B 201 T")(made("torchaudio.transforms", "GriffinLim", n_fft=400, n_iter=2, rand_init=False))
model("torchaudio.Conformer", "x: B T 16", "n: i4 B")(made("torchaudio.models", "Conformer", lambda m, x, n: m(x, (x.shape[1] - n).index_fill(0, torch.tensor([0]), x.shape[1])), input_dim=16, num_heads=2, ffn_dim=32, num_layers=2, depthwise_conv_kernel_size=7))
model("torchaudio.Emformer", "x: B 12 16", "n: i4 B")(made("torchaudio.models", "Emformer", lambda m, x, n: m(x, 8 - n), input_dim=16, num_heads=2, ffn_dim=32, num_layers=1, segment_length=4, right_context_length=4))
model("torchaudio.ConvTasNet", "x: B 1 S")(made("torchaudio.models", "ConvTasNet", num_sources=2, enc_num_feats=16, msk_num_feats=8, msk_num_hidden_feats=16, msk_num_layers=2, msk_num_stacks=1))
model("torchaudio.HDemucs", "x: B 2 S", S=(8192, 12288))(made("torchaudio.models", "HDemucs", sources=lambda: ["a", "b"], channels=4, nfft=1024, depth=4))
model("torchaudio.DeepSpeech", "x: B 1 T 16")(made("torchaudio.models", "DeepSpeech", n_feature=16, n_hidden=32, n_class=9))
model("torchaudio.Wav2Letter", "x: B 1 S")(made("torchaudio.models", "Wav2Letter", num_classes=9, input_type="waveform", num_features=1))
model("torchaudio.WaveRNN", "x: B 1 S", "s: B 1 8 K", S=(32, 80), K=(8, 14), B=(2, 3))(made("torchaudio.models", "WaveRNN", lambda m, x, s: m(x[:, :, : (s.shape[-1] - 4) * 8], s), upsample_scales=[2, 4], n_classes=9, hop_length=8, n_res_block=1, n_rnn=16, n_fc=16, kernel_size=5, n_freq=8, n_hidden=8, n_output=8))
model("torchaudio.Tacotron2Encoder", "ids: i20 B T")(made("torchaudio.models", "Tacotron2", lambda m, x: m.encoder(m.embedding(x).transpose(1, 2), torch.full((x.shape[0],), x.shape[1])), n_symbol=20, n_mels=8, symbol_embedding_dim=16, encoder_embedding_dim=16))
model("torchaudio.wav2vec2", "x: B S")(made("torchaudio.models", "wav2vec2_model", extractor_mode="group_norm", extractor_conv_layer_config=lambda: [(16, 10, 5), (16, 3, 2), (16, 2, 2)], extractor_conv_bias=False, encoder_embed_dim=32, encoder_projection_dropout=0.1, encoder_pos_conv_kernel=16, encoder_pos_conv_groups=2, encoder_num_layers=2, encoder_num_heads=2, encoder_attention_dropout=0.1, encoder_ff_interm_features=64, encoder_ff_interm_dropout=0.1, encoder_dropout=0.1, encoder_layer_norm_first=False, encoder_layer_drop=0.0, aux_num_out=9))
model("torchaudio.wavlm", "x: B S")(made("torchaudio.models", "wavlm_model", extractor_mode="group_norm", extractor_conv_layer_config=lambda: [(16, 10, 5), (16, 3, 2), (16, 2, 2)], extractor_conv_bias=False, encoder_embed_dim=32, encoder_projection_dropout=0.1, encoder_pos_conv_kernel=16, encoder_pos_conv_groups=2, encoder_num_layers=2, encoder_num_heads=2, encoder_num_buckets=32, encoder_max_distance=80, encoder_attention_dropout=0.1, encoder_ff_interm_features=64, encoder_ff_interm_dropout=0.1, encoder_dropout=0.1, encoder_layer_norm_first=False, encoder_layer_drop=0.0, aux_num_out=9))
model("torchaudio.SquimObjective", "x: B S", S=(16000, 24000))(made("torchaudio.models", "squim_objective_model", feat_dim=16, win_len=32, d_model=16, nhead=2, hidden_dim=16, num_blocks=1, rnn_type="LSTM", chunk_size=20))
model("speechbrain.ECAPA_TDNN", "x: B T 16")(made("speechbrain.lobes.models.ECAPA_TDNN", "ECAPA_TDNN", input_size=16, channels=[32, 32, 32, 32, 96], kernel_sizes=[5, 3, 3, 3, 1], dilations=[1, 2, 3, 4, 1], attention_channels=16, lin_neurons=24))
model("speechbrain.Xvector", "x: B T 16", T=(32, 48))(made("speechbrain.lobes.models.Xvector", "Xvector", in_channels=16, tdnn_channels=[32, 32, 32, 32, 96], lin_neurons=24, device="cpu"))
model("speechbrain.CRDNN", "x: B T 16")(made("speechbrain.lobes.models.CRDNN", "CRDNN", input_shape=[None, None, 16], cnn_channels=[4, 4], cnn_kernelsize=(3, 3), rnn_layers=1, rnn_neurons=16, dnn_neurons=16, dnn_blocks=1, time_pooling=True))
model("speechbrain.Fbank", "x: B S")(made("speechbrain.lobes.features", "Fbank", n_mels=40))
model("speechbrain.ConformerEncoder", "x: B T 16")(made("speechbrain.lobes.models.transformer.Conformer", "ConformerEncoder", lambda m, x: m(x, pos_embs=torch.ones(1, 2 * x.shape[1] - 1, 16))[0], num_layers=1, d_model=16, d_ffn=32, nhead=2, kernel_size=7))
model("speechbrain.SepformerMaskNet", "x: B 16 T", T=(40, 64))(lambda: (lambda d: d.Dual_Path_Model(16, 16, d.SBTransformerBlock(1, 16, 2, d_ffn=32), d.SBTransformerBlock(1, 16, 2, d_ffn=32), num_layers=1, K=8, num_spks=2, linear_layer_after_inter_intra=False))(importlib.import_module("speechbrain.lobes.models.dual_path")))
model("speechbrain.HifiganGenerator", "x: B 16 T")(made("speechbrain.lobes.models.HifiGAN", "HifiganGenerator", in_channels=16, out_channels=1, resblock_type="1", resblock_dilation_sizes=[[1, 3, 5], [1, 3, 5]], resblock_kernel_sizes=[3, 7], upsample_kernel_sizes=[4, 4], upsample_initial_channel=16, upsample_factors=[2, 2]))
model("speechbrain.SincConv", "x: B S")(made("speechbrain.nnet.CNN", "SincConv", lambda m, x: m(x.unsqueeze(-1)), in_channels=1, out_channels=8, kernel_size=11))
model("speechbrain.MetricGAN", "x: B T 257")(made("speechbrain.lobes.models.MetricGAN", "EnhancementGenerator", lambda m, x: m(x, torch.ones(x.shape[0])), hidden_size=200))
for _n in ["ConvTasNet", "DPRNNTasNet", "DPTNet", "SuDORMRFNet", "LSTMTasNet"]:
    def _f(_n=_n):
        how = dict(ConvTasNet=dict(n_blocks=2, n_repeats=1, bn_chan=8, hid_chan=16, skip_chan=8, n_filters=16), DPRNNTasNet=dict(n_filters=16, bn_chan=8, hid_size=8, chunk_size=20, n_repeats=1), DPTNet=dict(n_filters=16, ff_hid=8, chunk_size=20, n_repeats=1, n_heads=2), SuDORMRFNet=dict(bn_chan=8, num_blocks=2, upsampling_depth=2, n_filters=16), LSTMTasNet=dict(n_filters=16, rnn_type="lstm", hid_size=8))[_n]
        m = importlib.import_module("asteroid.models")
        return getattr(m, _n)(n_src=2, **how)
    model(f"asteroid.{_n}", "x: B 1 S", S=(1600, 2400))(_f)
model("demucs.Demucs", "x: B 2 S", S=(6000, 9000))(made("demucs.demucs", "Demucs", sources=lambda: ["a", "b"], channels=4, depth=3, lstm_layers=1))
model("demucs.HDemucs", "x: B 2 S", S=(8192, 12288))(made("demucs.hdemucs", "HDemucs", sources=lambda: ["a", "b"], channels=4, nfft=1024, depth=4))
model("demucs.HTDemucs", "x: B 2 8192", B=(1, 2))(made("demucs.htdemucs", "HTDemucs", sources=lambda: ["a", "b"], channels=4, nfft=512, depth=3, t_layers=1, t_heads=2, segment=1, samplerate=8192, bottom_channels=16, cac=True, use_train_segment=False))
model("julius.ResampleFrac", "x: B S")(made("julius", "ResampleFrac", old_sr=3, new_sr=2))
model("julius.LowPassFilter", "x: B S")(made("julius", "LowPassFilter", cutoff=0.1))
model("julius.SplitBands", "x: B S")(made("julius", "SplitBands", sample_rate=16000, n_bands=4))
model("julius.FFTConv1d", "x: B 2 S")(made("julius.fftconv", "FFTConv1d", in_channels=2, out_channels=3, kernel_size=65))
model("encodec.EncodecModel", "x: B 1 S", S=(3200, 6400))(lambda: (lambda e: (e.EncodecModel._get_model([1.5, 3.], 16000, 1, causal=True, model_norm="weight_norm"), lambda m, x: m(x)))(importlib.import_module("encodec.model")))
model("snac.SNAC", "x: B 1 S", S=(4096, 8192))(made("snac", "SNAC", lambda m, x: m.decode(m.encode(x)), sampling_rate=16000, encoder_dim=8, encoder_rates=[2, 4, 4], latent_dim=64, decoder_dim=64, decoder_rates=[4, 4, 2], attn_window_size=None, codebook_size=32, codebook_dim=4, vq_strides=[4, 2, 1], noise=False, depthwise=True))
model("vocos.Backbone", "x: B 16 T")(lambda: (lambda m, h: torch.nn.Sequential(m.VocosBackbone(16, 32, 64, 2), h.ISTFTHead(32, 64, 16)))(importlib.import_module("vocos.models"), importlib.import_module("vocos.heads")))
model("nnAudio.STFT", "x: B S")(made("nnAudio.features", "STFT", n_fft=256, verbose=False))
model("nnAudio.CQT", "x: B S", S=(16000, 24000))(made("nnAudio.features", "CQT1992v2", sr=16000, n_bins=24, fmin=220, verbose=False))
model("nnAudio.MelSpectrogram", "x: B S")(made("nnAudio.features", "MelSpectrogram", n_fft=512, n_mels=32, verbose=False))
model("nnAudio.Gammatonegram", "x: B S")(made("nnAudio.features", "Gammatonegram", n_fft=512, n_bins=32, verbose=False))
model("torchcrepe.Crepe", "x: B 1024")(made("torchcrepe.model", "Crepe", model="tiny"))
model("silero_vad.VAD", "x: B 512")(lambda: (importlib.import_module("silero_vad").load_silero_vad(), lambda m, x: m(x, 16000)))
model("pyannote.PyanNet", "x: B 1 S", S=(16000, 24000))(made("pyannote.audio.models.segmentation", "PyanNet", lambda m, x: m(x), sincnet=lambda: {"stride": 10}, lstm=lambda: dict(hidden_size=16, num_layers=1, bidirectional=True, monolithic=True, dropout=0.0)))

# geometry, graphs and equations

for _n, _how in {"kornia.Canny": ("kornia.filters", "Canny", {}), "kornia.GaussianBlur2d": ("kornia.filters", "GaussianBlur2d", dict(kernel_size=(5, 5), sigma=(1.5, 1.5))), "kornia.MedianBlur": ("kornia.filters", "MedianBlur", dict(kernel_size=(3, 3))), "kornia.Sobel": ("kornia.filters", "Sobel", {}),
                 "kornia.BilateralBlur": ("kornia.filters", "BilateralBlur", dict(kernel_size=(5, 5), sigma_color=0.1, sigma_space=(1.5, 1.5))), "kornia.RgbToHsv": ("kornia.color", "RgbToHsv", {}), "kornia.RgbToLab": ("kornia.color", "RgbToLab", {}), "kornia.RgbToYcbcr": ("kornia.color", "RgbToYcbcr", {}), "kornia.CornerHarris": ("kornia.feature", "CornerHarris", dict(k=0.04)),
                 "kornia.SSIM": ("kornia.metrics", "SSIM", dict(window_size=5)), "kornia.Resize": ("kornia.geometry.transform", "Resize", dict(size=(40, 56), antialias=True)), "kornia.PyrDown": ("kornia.geometry.transform", "PyrDown", {})}.items():
    model(_n, "x: u B 3 H W", *(["y: u B 3 H W"] if "SSIM" in _n else []))(made(_how[0], _how[1], **_how[2]))
model("kornia.warp_perspective", "x: u B 3 H W", "d: B 3 3")(lambda: (torch.nn.Identity(), lambda m, x, d: importlib.import_module("kornia.geometry.transform").warp_perspective(x, torch.eye(3) + 0.001 * d, (40, 48))))
model("kornia.equalize", "x: u B 3 32 32")(lambda: (torch.nn.Identity(), lambda m, x: importlib.import_module("kornia.enhance").equalize(x)))
model("kornia.equalize_clahe", "x: u B 1 64 64")(lambda: (torch.nn.Identity(), lambda m, x: importlib.import_module("kornia.enhance").equalize_clahe(x, grid_size=(4, 4))))
model("kornia.axis_angle_to_rotation_matrix", "a: B 3")(lambda: (torch.nn.Identity(), lambda m, a: importlib.import_module("kornia.geometry.conversions").axis_angle_to_rotation_matrix(a)))
model("kornia.rotation_matrix_to_quaternion", "a: B 3")(lambda: (torch.nn.Identity(), lambda m, a: (lambda c: c.rotation_matrix_to_quaternion(c.axis_angle_to_rotation_matrix(a)))(importlib.import_module("kornia.geometry.conversions"))))
model("kornia.HardNet", "x: B 1 32 32")(made("kornia.feature", "HardNet", pretrained=False))
model("kornia.SOSNet", "x: B 1 32 32")(made("kornia.feature", "SOSNet", pretrained=False))
model("kornia.TFeat", "x: B 1 32 32")(made("kornia.feature", "TFeat", pretrained=False))
model("kornia.SIFTDescriptor", "x: u B 1 32 32")(made("kornia.feature", "SIFTDescriptor", patch_size=32))
model("kornia.DISK", "x: u B 3 H W")(lambda: (importlib.import_module("kornia.feature").DISK(), lambda m, x: m.heatmap_and_dense_descriptors(x)))
model("kornia.LoFTR", "a: u B 1 64 64", "b: u B 1 64 64", B=(1, 2))(lambda: (importlib.import_module("kornia.feature").LoFTR(pretrained=None), lambda m, a, b: m({"image0": a, "image1": b})))
for _n in ["GCNConv", "SAGEConv", "GATConv", "GATv2Conv", "GINConv", "ChebConv", "TransformerConv", "GraphConv", "SGConv", "TAGConv", "ARMAConv", "PNAConv", "EdgeConv", "FiLMConv", "GatedGraphConv", "ResGatedGraphConv", "SuperGATConv", "LEConv", "ClusterGCNConv", "GENConv", "GeneralConv", "AGNNConv", "APPNP", "MFConv"]:
    def _f(_n=_n):
        nn = importlib.import_module("torch_geometric.nn")
        lin = lambda a, b: torch.nn.Sequential(torch.nn.Linear(a, b), torch.nn.ReLU())
        how = {"GINConv": (lin(8, 4),), "EdgeConv": (lin(16, 4),), "ChebConv": (8, 4, 3), "GatedGraphConv": (8, 2), "AGNNConv": (), "APPNP": (3, 0.1)}.get(_n, (8, 4))
        extra = dict(aggregators=["mean", "min", "max", "std"], scalers=["identity", "amplification", "attenuation"], deg=torch.tensor([0, 4, 8, 4])) if _n == "PNAConv" else {}
        return getattr(nn, _n)(*how, **extra), lambda m, x, e: m(x, e)
    model(f"torch_geometric.{_n}", "x: N 8", "edges: i16 2 E", E=(48, 64))(_f)
for _n, _call in {"global_mean_pool": None, "global_max_pool": None, "GraphNorm": "norm", "AttentionalAggregation": "agg", "Set2Set": "agg", "SoftmaxAggregation": "agg", "LSTMAggregation": "agg", "SortAggregation": "agg"}.items():
    def _f(_n=_n, _call=_call):
        nn = importlib.import_module("torch_geometric.nn")
        if _call is None:
            return torch.nn.Identity(), lambda m, x, b: getattr(nn, _n)(x, b.sort()[0], 4)
        if _call == "norm":
            return getattr(nn, _n)(8), lambda m, x, b: m(x, b.sort()[0], 4)
        agg = {"AttentionalAggregation": lambda: nn.AttentionalAggregation(torch.nn.Linear(8, 1)), "Set2Set": lambda: nn.Set2Set(8, 2), "SoftmaxAggregation": lambda: nn.SoftmaxAggregation(learn=True), "LSTMAggregation": lambda: nn.LSTMAggregation(8, 8), "SortAggregation": lambda: nn.SortAggregation(3)}[_n]()
        return agg, lambda m, x, b: m(x, b.sort()[0], dim_size=4)
    model(f"torch_geometric.{_n}", "x: N 8", "batch: i4 N")(_f)
model("torch_geometric.GCN", "z: i9 N", "p: N 3", N=(8, 12))(lambda: (importlib.import_module("torch_geometric.nn").GCN(8, 16, 2, 4), lambda m, z, p: m(torch.nn.functional.one_hot(z, 8 + 1)[:, :8].float() + p.sum(1, keepdim=True), torch.stack([torch.arange(z.shape[0]), torch.arange(z.shape[0]).flip(0)]))))
model("torch_geometric.DimeNetBasis", "d: u E", E=(8, 12))(lambda: (importlib.import_module("torch_geometric.nn.models.dimenet").BesselBasisLayer(6, 5.0), lambda m, d: m(d + 0.1)))
model("torch_geometric.DenseGCN", "x: B N 8", "adj: u B N N")(lambda: (importlib.import_module("torch_geometric.nn").DenseGCNConv(8, 4), lambda m, x, a: m(x, a)))
model("torch_geometric.DenseDiffPool", "x: B N 8", "adj: u B N N", "s: B N 5")(lambda: (torch.nn.Identity(), lambda m, x, a, s: importlib.import_module("torch_geometric.nn").dense_diff_pool(x, a, s)))
model("e3nn.SphericalHarmonics", "x: N 3")(lambda: (lambda o3: o3.SphericalHarmonics("1x0e+1x1o+1x2e", True))(importlib.import_module("e3nn.o3")))
model("e3nn.Linear", "x: N 11")(lambda: (lambda o3: o3.Linear("2x0e+3x1o", "4x0e+2x1o"))(importlib.import_module("e3nn.o3")))
model("e3nn.FullyConnectedTensorProduct", "x: N 11", "y: N 4")(lambda: (lambda o3: o3.FullyConnectedTensorProduct("2x0e+3x1o", "1x0e+1x1o", "2x0e+2x1o"))(importlib.import_module("e3nn.o3")))
model("e3nn.Gate", "x: N 16")(lambda: (lambda nn: nn.Gate("4x0e", [torch.tanh], "3x0e", [torch.sigmoid], "3x1o"))(importlib.import_module("e3nn.nn")))
model("e3nn.BatchNorm", "x: N 11")(lambda: (lambda nn: nn.BatchNorm("2x0e+3x1o"))(importlib.import_module("e3nn.nn")))
model("e3nn.NormActivation", "x: N 11")(lambda: (lambda nn: nn.NormActivation("2x0e+3x1o", torch.sigmoid))(importlib.import_module("e3nn.nn")))


class Field(torch.nn.Module):
    """A vector field of a differential equation."""

    def __init__(self):
        super().__init__()
        self.net = torch.nn.Sequential(torch.nn.Linear(4, 16), torch.nn.Tanh(), torch.nn.Linear(16, 4))

    def forward(self, t, y):
        return self.net(y) * torch.cos(t)


for _n in ["rk4", "euler", "midpoint", "implicit_adams", "dopri5"]:
    model(f"torchdiffeq.{_n}", "y: B 4")(lambda _n=_n: (Field(), lambda m, y: importlib.import_module("torchdiffeq").odeint(m, y, torch.linspace(0, 1, 5), method=_n)))

# vision, text in images, video, compression, measures

for _n, _j in {"DWTForward": None, "DTCWTForward": None}.items():
    model(f"pytorch_wavelets.{_n}", "x: B 3 H W")(made("pytorch_wavelets", _n, J=2))
model("pytorch_wavelets.DWTInverse", "l: B 3 H W", "h: B 3 3 H W")(made("pytorch_wavelets", "DWTInverse", lambda m, l, h: m((l, [h])), wave="db2"))
for _n in ["FactorizedPrior", "ScaleHyperprior", "MeanScaleHyperprior", "JointAutoregressiveHierarchicalPriors", "Cheng2020Anchor", "Elic2022Official"]:
    model(f"compressai.{_n}", "x: u B 3 H W", W=(64, 64), H=(64, 128))(made("compressai.models", _n, **({"N": 16, "M": 24} if _n not in ("Cheng2020Anchor", "Elic2022Official") else {"N": 16} if _n == "Cheng2020Anchor" else {"N": 16, "M": 32, "groups": [4, 4, 8, 16]})))
for _n, _how in {"ssim": {}, "multi_scale_ssim": {}, "psnr": {}, "vif_p": {}, "fsim": {}, "gmsd": {}, "vsi": {}, "haarpsi": {}, "mdsi": {}, "srsim": {}, "dss": {}, "iw_ssim": {}}.items():
    def _f(_n=_n):
        def call(m, x, y):
            piq = importlib.import_module("piq")
            name = "information_weighted_ssim" if _n == "iw_ssim" else _n
            return getattr(piq, name)(x, y, data_range=1.)
        return torch.nn.Identity(), call
    model(f"piq.{_n}", "x: u B 3 H W", "y: u B 3 H W", H=(192, 224), W=(192, 192))(_f)
model("piq.total_variation", "x: u B 3 H W")(lambda: (torch.nn.Identity(), lambda m, x: importlib.import_module("piq").total_variation(x)))
model("lpips.LPIPS", "x: u B 3 H W", "y: u B 3 H W")(made("lpips", "LPIPS", pretrained=False, pnet_rand=True, net="squeeze", verbose=False))
model("open_clip.CLIP", "x: B 3 32 32", "ids: i99 B 16")(lambda: importlib.import_module("open_clip.model").CLIP(embed_dim=32, vision_cfg=dict(image_size=32, layers=2, width=64, head_width=32, patch_size=8), text_cfg=dict(context_length=16, vocab_size=99, width=32, heads=2, layers=2)))
model("open_clip.CoCa", "x: B 3 32 32", "ids: i99 B 16")(lambda: importlib.import_module("open_clip").CoCa(embed_dim=32, vision_cfg=dict(image_size=32, layers=2, width=64, head_width=32, patch_size=8, attentional_pool=True, attn_pooler_heads=4, output_tokens=True), text_cfg=dict(context_length=16, vocab_size=99, width=32, heads=2, layers=2, embed_cls=True, output_tokens=True), multimodal_cfg=dict(context_length=16, vocab_size=99, width=32, heads=2, layers=2)))
for _n in ["slow_r50", "mvit", "csn"]:
    def _f(_n=_n):
        m = importlib.import_module("pytorchvideo.models")
        if _n == "mvit":
            return m.vision_transformers.create_multiscale_vision_transformers(spatial_size=64, temporal_size=4, depth=3, head_num_classes=5, patch_embed_dim=16, embed_dim_mul=[[1, 2.0]], atten_head_mul=[[1, 2.0]], pool_q_stride_size=[[1, 1, 2, 2]], pool_kv_stride_adaptive=[1, 4, 4], pool_kvq_kernel=[3, 3, 3])
        if _n == "slow_r50":
            return m.resnet.create_resnet(model_num_class=5, head_pool_kernel_size=(4, 2, 2))
        return m.csn.create_csn(model_num_class=5, head_pool_kernel_size=(1, 2, 2), stem_pool=torch.nn.MaxPool3d)
    model(f"pytorchvideo.{_n}", "x: B 3 8 64 64" if _n == "csn" else "x: B 3 4 64 64", B=(1, 2))(_f)
model("segment_anything.Encoder", "x: B 3 64 64")(lambda: importlib.import_module("segment_anything.modeling").ImageEncoderViT(img_size=64, patch_size=8, embed_dim=32, depth=2, num_heads=2, out_chans=16, use_rel_pos=True, window_size=4, global_attn_indexes=(1,)))


def _sam():
    s = importlib.import_module("segment_anything.modeling")
    sam = s.Sam(s.ImageEncoderViT(img_size=64, patch_size=8, embed_dim=32, depth=1, num_heads=2, out_chans=32, use_rel_pos=True), s.PromptEncoder(32, (8, 8), (64, 64), 8), s.MaskDecoder(transformer_dim=32, transformer=s.TwoWayTransformer(depth=2, embedding_dim=32, num_heads=2, mlp_dim=64)))
    return importlib.import_module("segment_anything.utils.onnx").SamOnnxModel(sam, return_single_mask=False), lambda m, e, p, l, k: m(e, p * 64, l, k, torch.zeros(1), torch.tensor([48.0, 64.0]))


model("segment_anything.SamOnnxModel", "e: 1 32 8 8", "p: u 1 T 2", "l: i2 1 T", "mask: 1 1 32 32", T=(3, 5))(_sam)
for _n, _m in {"crnn_vgg16_bn": "recognition", "crnn_mobilenet_v3_small": "recognition", "parseq": "recognition", "vitstr_small": "recognition", "sar_resnet31": "recognition", "db_mobilenet_v3_large": "detection", "linknet_resnet18": "detection", "fast_tiny": "detection"}.items():
    def _f(_n=_n, _m=_m):
        m = getattr(importlib.import_module(f"doctr.models.{_m}"), _n)(pretrained=False, pretrained_backbone=False)
        m.exportable = True
        return m
    model(f"doctr.{_n}", "x: u B 3 32 128" if _m == "recognition" else "x: u B 3 H W", H=(64, 128))(_f)
model("easyocr.CRAFT", "x: B 3 H W")(made("easyocr.craft", "CRAFT", pretrained=False))
model("easyocr.CRNN", "x: B 1 64 W")(made("easyocr.model.model", "Model", lambda m, x: m(x, None), input_channel=1, output_channel=32, hidden_size=16, num_class=20))
model("easyocr.CRNN_vgg", "x: B 1 64 W")(made("easyocr.model.vgg_model", "Model", lambda m, x: m(x, None), input_channel=1, output_channel=32, hidden_size=16, num_class=20))
model("effdet.EfficientDet", "x: B 3 128 128")(lambda: (lambda e: e.create_model("tf_efficientdet_lite0", pretrained=False, pretrained_backbone=False, image_size=[128, 128], num_classes=5))(importlib.import_module("effdet")))
model("effdet.Predict", "x: B 3 128 128")(lambda: (lambda e: e.create_model("tf_efficientdet_lite0", bench_task="predict", pretrained=False, pretrained_backbone=False, image_size=[128, 128], num_classes=5))(importlib.import_module("effdet")))
for _n, _how in {"RRDBNet": ("rrdbnet_arch", dict(num_in_ch=3, num_out_ch=3, num_feat=8, num_block=1, num_grow_ch=4)), "SwinIR": ("swinir_arch", dict(img_size=32, embed_dim=12, depths=(2,), num_heads=(2,), window_size=8, upscale=2, upsampler="pixelshuffle")), "EDSR": ("edsr_arch", dict(num_in_ch=3, num_out_ch=3, num_feat=8, num_block=2)), "SRVGGNetCompact": ("srvgg_arch", dict(num_feat=8, num_conv=4)), "MSRResNet": ("srresnet_arch", dict(num_in_ch=3, num_out_ch=3, num_feat=8, num_block=2)), "RCAN": ("rcan_arch", dict(num_in_ch=3, num_out_ch=3, num_feat=16, num_group=1, num_block=1)), "BasicVSR": ("basicvsr_arch", dict(num_feat=8, num_block=1)), "DuF": ("duf_arch", {}), "SPyNet": ("spynet_arch", {})}.items():
    def _f(_n=_n, _how=_how):
        import types
        import torchvision.transforms.functional as functional
        old = sys.modules["torchvision.transforms.functional_tensor"] = types.ModuleType("functional_tensor")
        old.rgb_to_grayscale = functional.rgb_to_grayscale
        arch = importlib.import_module(f"basicsr.archs.{_how[0]}")
        if _n == "SPyNet":
            return arch.SpyNet(None), lambda m, a, b: m(a, b)
        return arch.DUF(scale=4, num_layer=16) if _n == "DuF" else getattr(arch, _n)(**_how[1])
    model(f"basicsr.{_n}", *{"BasicVSR": ["x: u B 3 3 64 64"], "DuF": ["x: u B 7 3 16 16"], "SPyNet": ["a: u B 3 H W", "b: u B 3 H W"], "SwinIR": ["x: u B 3 32 32"]}.get(_n, ["x: u B 3 H W"]))(_f)
model("facexlib.RetinaFace", "x: B 3 H W")(made("facexlib.detection.retinaface", "RetinaFace", network_name="resnet50"))
model("facexlib.BiSeNet", "x: B 3 H W")(made("facexlib.parsing.bisenet", "BiSeNet", num_class=5))
model("facexlib.ParseNet", "x: B 3 64 64")(made("facexlib.parsing.parsenet", "ParseNet", in_size=64, out_size=64, parsing_ch=5))
model("facexlib.Hopenet", "x: B 3 224 224")(lambda: (lambda h: h.HopeNet("resnet", [1, 1, 1, 1], 66))(importlib.import_module("facexlib.headpose.hopenet_arch")))
