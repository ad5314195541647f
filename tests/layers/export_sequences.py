# SPDX-License-Identifier: Apache-2.0
"""Kernel sequences of public traces, for the trials of layer detection: export_sequences.py FOLDER [--one-rank] > sequences.txt

FOLDER holds the traces as docs/internals/layer_detection.md lists them; --one-rank: of several ranks the first alone. A sequence begins with "= name layers", and
"told" where names and times say less than that number; then one line a kernel: name id, begin ns, end ns, anchor, stream, launch number (0: not known), and its layer by the trace's own
module stacks or capture (-1: outside all layers, -2: not known). The names of kernels and the times stay as they were.
"""

import collections
import gzip
import json
import pathlib
import re
import sqlite3
import sys
import tempfile

Op = collections.namedtuple("Op", "name begin end stream correlation grid")

# What is an anchor, in this order. Enough for these traces; the rules of the command know more.
ANCHORS = [(anchor, re.compile(pattern)) for anchor, pattern in (
    ("gemm", r"^nvjet_|^sm\d+_xmma_gemm|^(ampere|volta|turing)_\w*gemm|^Cijk_|gemv|^cutlass_\d+_\w*gemm|GemmType\)0|Kernel2<cutlass"),
    ("sampling", r"ArgMax|argmax|mbtopk|gatherTopK|exponential|distribution_elementwise|top_?k_?top_?p"),
    ("attention", r"fmha|flash_?fwd|flash_mla|Flash|paged_attention|BatchMLAPage|BatchDecode|BatchPrefill|unified_attention"
                  r"|reduce_segments|_fwd_grouped_kernel|_fwd_kernel_stage|pytorch_flash|attn_fwd|attention_kernel|merge_attn"),
    ("router", r"topk_?[sS]oftmax|topkGating|grouped_topk|moe_fused_gate|routingIndices|_topk_forward|_combined_routing|_sum_bitmatrix"),
    ("mlp", r"silu|Silu|SiLU|swiglu|gelu|Gelu|act_and_mul|fused_moe|moe_gemm|_matmul_ogs|GemmType\)[12]|^bmm_\w*_t\d+x\d+"
            r"|ep::.*(dispatch|combine)|deep_ep|align_block|moe_sum|finalize|_permute"),
    ("norm", r"rms_?norm|RMSNorm|Rmsnorm|rmsNorm|layer_?norm|LayerNorm|ln_fwd|rsqrt|pow_mean|_mean_"),
    ("embedding", r"embedding|indexSelect|vectorized_gather"),
    ("softmax", r"[sS]oft_?[mM]ax"),
    ("gemm", r"gemm|Gemm|matmul|triton_tem|triton_mm|triton_\w*[md]m_|splitKreduce"),
)]


def nanoseconds(text):
    """Decimal microseconds as whole nanoseconds; a double would round them."""
    whole, _, part = str(text).partition(".")
    return int(whole) * 1000 + int((part + "000")[:3])


def read_kineto(path):
    with gzip.open(path, "rt", encoding="utf-8", errors="replace") as file:
        events = json.load(file, parse_float=str)
    events = events if isinstance(events, list) else events["traceEvents"]
    ops, launches, stacks = [], {}, collections.defaultdict(list)
    for event in events:
        if event.get("ph") != "X":
            continue
        category, args = event.get("cat", ""), event.get("args", {})
        begin = nanoseconds(event["ts"])
        end = begin + nanoseconds(event.get("dur", 0))
        if category in ("kernel", "gpu_memcpy", "gpu_memset"):
            ops.append(Op(event["name"], begin, end, int(args.get("stream", 0)), args.get("correlation"), str(args.get("grid"))))
        elif category in ("cuda_runtime", "cuda_driver"):
            launches.setdefault(args.get("correlation"), (event["name"], begin, event.get("tid"), args))
        elif category == "python_function" and event["name"].startswith("nn.Module:"):
            stacks[event.get("tid")].append((begin, end, event["name"][len("nn.Module:"):].strip()))
    return ops, launches, stacks


def read_rpd(path):
    with tempfile.NamedTemporaryFile(suffix=".rpd") as plain:
        plain.write(gzip.open(path).read())
        plain.flush()
        base = sqlite3.connect(f"file:{plain.name}?mode=ro", uri=True)
        text = dict(base.execute("select id, string from rocpd_string"))
        api_of = dict(base.execute("select op_id, api_id from rocpd_api_ops"))
        names = {row[0]: text.get(row[1], "") for row in base.execute("select id, apiName_id from rocpd_api")}
        ops = []
        for row, queue, begin, end, name, kind in base.execute(
                "select id, queueId, start, end, description_id, opType_id from rocpd_op"):
            if not re.search("Marker|Barrier", text.get(kind, "")):
                ops.append(Op(text.get(name) or text.get(kind, ""), begin, max(begin, end), queue, api_of.get(row), ""))
        return ops, {key: (name, 0, None, {}) for key, name in names.items()}, {}


def read_rocprof(path):
    ops = []
    for tool in json.load(gzip.open(path))["rocprofiler-sdk-tool"]:
        symbols = {symbol["kernel_id"]: symbol["formatted_kernel_name"] for symbol in tool["kernel_symbols"]}
        for row in tool["buffer_records"]["kernel_dispatch"]:
            info = row["dispatch_info"]
            ops.append(Op(symbols[info["kernel_id"]], row["start_timestamp"], row["end_timestamp"], info["queue_id"]["handle"],
                          row["correlation_id"]["internal"], str(info["grid_size"])))
    return ops, {}, {}


def layer_of(modules):
    for name in modules:
        found = re.match(r"\w*(?:DecoderLayer|TransformerBlock|Block|EncoderLayer|Layer)_(\d+)$", name)
        if found:
            return int(found.group(1))
    return -1


def layers_by_stack(times, stacks):
    """The layer of each moment of one thread, by the modules that were open then."""
    opened, waiting, found = [], sorted(stacks, key=lambda s: (s[0], -s[1])), {}
    position = 0
    for moment, key in sorted(times):
        while position < len(waiting) and waiting[position][0] <= moment:
            opened.append(waiting[position])
            position += 1
        opened = [stack for stack in opened if stack[1] >= moment]
        found[key] = layer_of([stack[2] for stack in opened]) if opened else -2
    return found


def truth_of(ops, launches, stacks):
    by_thread = collections.defaultdict(list)
    for op in ops:
        if op.correlation in launches:
            _, moment, thread, _ = launches[op.correlation]
            by_thread[thread].append((moment, op.correlation))
    truth = {}
    for thread, times in by_thread.items():
        if stacks.get(thread):
            truth.update(layers_by_stack(times, stacks[thread]))
    # Modules that name no layer say nothing.
    return truth if any(layer >= 0 for layer in truth.values()) else {}


def truth_of_capture(path):
    """The layers of the kernels of a graph, in order, by the modules that were open while they were captured."""
    _, launches, stacks = read_kineto(path)
    rows = sorted(((row[1], key, row) for key, row in launches.items()), key=lambda row: row[0])
    begin = next(moment for moment, _, row in rows if "BeginCapture" in row[0])
    end = next(moment for moment, _, row in rows if "EndCapture" in row[0])
    inside = [(moment, key, row) for moment, key, row in rows if begin <= moment <= end and "LaunchKernel" in row[0]]
    found = {}
    for thread in {row[2] for _, _, row in inside}:
        found.update(layers_by_stack([(moment, key) for moment, key, row in inside if row[2] == thread], stacks[thread]))
    return [found[key] for _, key, _ in inside]


def anchors_of(names):
    anchors = []
    for name in names:
        short = name[5:] if name.startswith("void ") else name
        anchors.append(next((anchor for anchor, pattern in ANCHORS if pattern.search(short)), "none"))
    group_norms(anchors, names)
    softmax_in_context(anchors, names)
    return anchors


def group_norms(anchors, names):
    """A norm of many elementwise kernels: all of them around its rsqrt."""
    for at in [i for i, name in enumerate(names) if "rsqrt" in name and "at::native" in name]:
        first = at
        while first > 0 and at - first < 5 and re.search(r"_add|AddFunctor|MeanOps|pow_tensor|copy", names[first - 1]):
            first -= 1
            if "copy" in names[first]:
                break
        last = at
        while last + 1 < len(names) and last - at < 3 and re.search(r"MulFunctor|BinaryFunctor<.*Mul|copy", names[last + 1]):
            last += 1
        anchors[first:last + 1] = ["norm"] * (last + 1 - first)


def softmax_in_context(anchors, names):
    """A softmax before a top-k or a sort is a router; between two gemms, where no attention kernel is known, it is attention."""
    fused = "attention" in anchors
    for at in [i for i, anchor in enumerate(anchors) if anchor == "softmax"]:
        after = names[at + 1:at + 5]
        around = [i for i in range(max(0, at - 7), min(len(names), at + 8)) if anchors[i] == "gemm"]
        if any(re.search(r"opK|topk|[sS]ort", name) for name in after):
            for i in range(at, min(at + 5, len(names))):
                if anchors[i] in ("softmax", "sampling"):
                    anchors[i] = "router"
        elif not fused and any(i < at for i in around) and any(i > at for i in around):
            anchors[at] = "attention"
        else:
            anchors[at] = "sampling"


def segments_of(ops, launches):
    """Replays of graphs, and what was launched between them; else everything."""
    ops = sorted(ops, key=lambda op: (op.begin, op.end))
    counts = collections.Counter(op.correlation for op in ops)
    replays = [key for key, count in counts.items() if count >= 8 and "GraphLaunch" in launches.get(key, ("",))[0]]
    whole = {key for key in replays if counts[key] >= 0.6 * max(counts[other] for other in replays)}
    if not whole or len(replays) > 8:
        return [("all", ops)]
    found, between = [], []
    for key in sorted(whole, key=lambda key: min(op.begin for op in ops if op.correlation == key)):
        found.append((f"replay{len(found)}", [op for op in ops if op.correlation == key]))
    for op in [*ops, None]:
        if op is not None and op.correlation not in whole:
            between.append(op)
            continue
        if len(between) > 100:
            found.append((f"eager{len(found)}", between))
        between = []
    return found


def write(name, layers, ops, truth, out):
    ids = {}
    out.write(f"= {name} {layers}{' told' if name in TOLD else ''}\n")
    for position, (op, anchor) in enumerate(zip(ops, anchors_of([op.name for op in ops]))):
        layer = truth[position] if isinstance(truth, list) else truth.get(op.correlation, -2)
        out.write(f"{ids.setdefault(op.name, len(ids))} {op.begin} {op.end} {anchor} {op.stream} {int(op.correlation or 0)} {layer}\n")


# A real hole is as long as a layer: names and times alone cannot say that nothing was lost.
TOLD = {"qwen3_8b_mi300x_sglang/decode.json/replay0"}

# Folder or file, reader, layers of the model.
TRACES = [
    ("deepseek_v3_h200_ep8", read_kineto, 61), ("qwen3_8b_mi300x_sglang/decode.json.gz", read_kineto, 36),
    ("qwen3_8b_mi300x_sglang/prefill.json.gz", read_kineto, 36), ("qwen1.5_0.5b", read_kineto, 24),
    ("gpt_oss_120b_b200", read_kineto, 36), ("gpt_oss_20b_mi300x_piecewise", read_kineto, 24),
    ("mixtral_8x7b_mi300x_tp8", read_rpd, 32), ("megatron_a100_tp8", read_kineto, 40), ("rocprofv3", read_rocprof, 0),
]


def main():
    folder, out = pathlib.Path(sys.argv[1]), sys.stdout
    for place, reader, layers in TRACES:
        path = folder / place
        for file in sorted(path.rglob("*.gz")) if path.is_dir() else [path]:
            if not file.exists() or ("--one-rank" in sys.argv and re.search(r"rank[1-7]\.", file.name)):
                continue
            ops, launches, stacks = reader(file)
            truth = truth_of(ops, launches, stacks)
            for label, segment in segments_of(ops, launches):
                capture = file.parent / "capture_bs32.json.gz"
                known = truth_of_capture(capture) if file.name == "decode.json.gz" and label == "replay0" else truth
                if isinstance(known, list) and len(known) != len(segment):
                    known = truth
                write(f"{str(file.relative_to(folder)).removesuffix('.gz')}/{label}", layers, segment, known, out)


if __name__ == "__main__":
    main()
