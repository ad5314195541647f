# SPDX-License-Identifier: Apache-2.0
"""Models of PyTorch that nobody changed: what is known of a module, found out once, and of a step, with each. The hooks themselves are
in _modules.c. What a module is called comes from modules.rules, as for `plumb import`.

Thread rule: every function from any thread, under the GIL."""

import functools
import inspect
import os
import pathlib
import sys
import threading
import weakref

from . import _library

ON_PROCESSOR, NO_WEIGHTS = -1, -2  # in place of the index of a GPU
ROWS_UNKNOWN, ROWS_ARE_ELEMENTS, ROWS_ARE_ALL_BUT_THE_LAST = range(3)
INPUTS = ("decoder_input_ids", "input_ids", "inputs_embeds", "tokens")  # what a model's tokens are called, where it has several tensors
POSITIONS = ("start_pos", "position", "pos", "past_length")  # whole numbers: how many tokens came before

core = _library.core
known = {}  # address of a module -> what is known of it
kinds = {}  # address of an outermost module -> its first weight, and of which type and device that was
steps_of_graphs = weakref.WeakKeyDictionary()  # a CUDA graph -> the step that was captured into it
captured = threading.local()  # step: the last one that was met while a graph was captured
said = set()
most_layers = -1  # of the models that were met
torch = None


def tell(kind, text):
    """One line to `plumb run`, in one call, so that lines of several processes stay whole. The path may lead to somebody else's file, as
    in another PID namespace: it is opened only if it is the file with that number."""
    named = -1
    try:
        path, *numbers = os.environ["PLUMB_RUN"].split(":")
        named = os.open(path, os.O_PATH | os.O_CLOEXEC)
        file = os.fstat(named)
        if [str(file.st_dev), str(file.st_ino)] != numbers:
            raise OSError("the file of another process")
        with open(f"/proc/self/fd/{named}", "ab", buffering=0) as notes:
            notes.write(f"{kind}\t{text}\0".encode())
    except (OSError, KeyError):
        if kind == "sentence":
            print(f"plumb: {text}", file=sys.stderr)
    finally:
        if named >= 0:
            os.close(named)


def say(sentence):
    """Each once."""
    if sentence not in said:
        said.add(sentence)
        tell("sentence", sentence)


def install(module):
    """REQUIRES: torch has just been imported."""
    global torch
    torch = module
    if not hasattr(core, "_watch_modules"):
        say("torch is not recorded: the extension of the Python package was not built; install python3-dev and build again")
        return
    of_modules = torch.nn.modules.module
    core._watch_modules(known, describe, outermost, current_stream(), getattr(torch._C, "_cuda_getDevice", None), is_elsewhere, torch.Tensor,
                        torch.nn.Parameter)
    # Newer torch calls a hook also where the module raised.
    always = {"always_call": True} if "always_call" in inspect.signature(of_modules.register_module_forward_hook).parameters else {}
    handles = [of_modules.register_module_forward_pre_hook(core._module_begins),
               of_modules.register_module_forward_hook(core._module_ends, **always)]
    if hasattr(torch, "compile"):
        torch.compile = leaving_before(torch.compile, handles)
    graph = getattr(getattr(torch, "cuda", None), "CUDAGraph", None)
    if current_stream() is not None and all(hasattr(graph, name) for name in ("capture_begin", "capture_end", "replay")):
        graph.capture_begin = after(forget_step, graph.capture_begin)
        graph.capture_end = after(keep_step, graph.capture_end)
        graph.replay = in_its_step(graph.replay)


def leaving_before(function, handles):
    """Hooks are a reason for the compiler to break its graphs, so they go before it comes."""

    @functools.wraps(function)
    def compiling(*arguments, **keywords):
        for handle in handles:
            handle.remove()
        if handles:
            handles.clear()
            drop_what_is_open()
            say("torch.compile was called: what runs from then on is not recorded, for hooks would change what is compiled")
        return function(*arguments, **keywords)

    return compiling


def drop_what_is_open():
    """No hook tells any more where the calls of modules end."""
    profiler = _library.current()
    try:
        if known and profiler is not None and profiler.enabled:
            profiler.disable()
            profiler.enable()
    except _library.Error as error:
        say(f"recording ended at torch.compile: {error}")


# --- GPUs ---


def current_stream():
    """The function that gives the current stream of a GPU by its index; None: this torch has no CUDA."""
    if getattr(getattr(torch, "version", None), "hip", None):
        return None
    return getattr(torch._C, "_cuda_getCurrentRawStream", None)


def is_elsewhere():
    say("modules on a GPU that is not the current one, on its default stream, are not recorded: call them under torch.cuda.device()")


def is_captured():
    return torch.cuda.is_current_stream_capturing()


def after(note, function):
    """No error of ours reaches the program."""

    @functools.wraps(function)
    def noting(graph, *arguments, **keywords):
        try:
            note(graph)
        except Exception as error:
            say(f"a CUDA graph has no step: {error}")
        return function(graph, *arguments, **keywords)

    return noting


def forget_step(graph):
    steps_of_graphs.pop(graph, None)
    vars(captured).pop("step", None)


def keep_step(graph):
    """Which step a graph computes, its capture says: no module is called in a replay."""
    step = vars(captured).pop("step", None)
    if step is not None:
        steps_of_graphs[graph] = step


def begin_step_of(graph):
    """Whether one began: a replay outside of any scope is a step."""
    try:
        step = None if core._is_open() else steps_of_graphs.get(graph)
        if step is None:
            return False
        core.push(step)
        return True
    except Exception as error:
        say(f"a CUDA graph has no step: {error}")
        return False


def in_its_step(replay):
    @functools.wraps(replay)
    def replaying(graph, *arguments, **keywords):
        if not begin_step_of(graph):
            return replay(graph, *arguments, **keywords)
        try:
            return replay(graph, *arguments, **keywords)
        finally:
            core.pop()

    return replaying


# --- What a module is ---


@functools.lru_cache(None)
def rules():
    """Of modules.rules: words of the module, words of one around it, its bricks, and whether each kernel of it is of one of them."""
    found = []
    for line in pathlib.Path(__file__).with_name("modules.rules").read_text().splitlines():
        words = line.split()
        if words and not line.startswith(("#", "*")):
            modules, inside = ([part for part in word.split("|") if part != "-"] for word in words[:2])
            found.append((modules, inside, words[2].lstrip("?").split(","), not words[2].startswith("?")))
    return found


def is_one(module, words):
    return any(module == word[1:] if word.startswith("=") else word in module for word in words)


def rule_of(word, around):
    for modules, inside, bricks, decides in rules():
        if is_one(word, modules) and (not inside or any(is_one(outer, inside) for outer in around)):
            return bricks, decides
    return None, False


def brick_of(name, kind, around, is_parent):
    """By its class, which says more than its name in the model, then by that; else it is called as it is there."""
    for word in (kind, name):
        bricks, decides = rule_of(word, around)
        if bricks and not is_parent and decides:
            return bricks[0]
        if bricks and is_parent and not (decides and bricks[0].endswith("norm")):  # by itself it does what no module in it does
            return bricks[0]
    return kind if name.isdigit() or not name else name


def work_of(module):
    """How rows are counted, bytes of each call, bytes and flops of each row. Only plain members are looked at: others may compute."""
    members, weights = vars(module), module._parameters
    weight = weights.get("weight")
    try:
        size = weight.element_size() if weight.is_floating_point() else 0
        fixed = sum(part.numel() * part.element_size() for part in [*weights.values(), *module._buffers.values()] if part is not None)
        inner, outer = members.get("in_features"), members.get("out_features")
        if type(module).__name__ == "Conv1D" and weight.dim() == 2:  # of transformers: a Linear whose weight lies the other way
            inner, outer = weight.shape
        if inner and outer:
            return ROWS_ARE_ALL_BUT_THE_LAST, fixed, (inner + outer) * size, 2 * inner * outer
        if members.get("embedding_dim") and weight.dim() == 2:
            return ROWS_ARE_ELEMENTS, 0, 2 * weight.shape[1] * size, 0
        if weight.dim() == 1 and "norm" in type(module).__name__.lower():
            return ROWS_ARE_ALL_BUT_THE_LAST, fixed, 2 * weight.numel() * size, 0
    except (AttributeError, RuntimeError, TypeError, ValueError):  # no weight, or none yet
        pass
    return ROWS_UNKNOWN, 0, 0, 0


def layers_of(modules):
    """Path -> index of each module that is a layer: one of a list whose members hold modules, and not inside another such list."""
    lists = {}
    for path, module in modules.items():
        parent, _, name = path.rpartition(".")
        if name.isdigit() and any(True for _ in module.children()):
            lists.setdefault(parent, []).append((path, int(name), type(module)))
    found = {}
    for members in lists.values():
        kinds_of = [kind for _, _, kind in members]
        if len(members) == 1 or len(set(kinds_of)) < len(kinds_of):  # else it is a chain of stages
            found.update((path, index) for path, index, _ in members)
    return {path: index for path, index in found.items() if not any(path.startswith(f"{outer}.") for outer in found)}


def add(path, module, holders, layer):
    kind = getattr(module, "original_name", type(module).__name__)
    is_parent = next(module.children(), None) is not None
    name = brick_of(path.rpartition(".")[2], kind, holders, is_parent)
    if is_parent and isinstance(module, torch.jit.ScriptModule):
        name = kind  # its time is that of all that is in it
        say(f"{kind} was compiled by torch.jit: the modules in it are not called one by one, so it is one brick")
    address = id(module)

    def forget(_):
        known.pop(address, None)
        kinds.pop(address, None)

    work = (ROWS_UNKNOWN, 0, 0, 0) if is_parent else work_of(module)
    known[address] = core._module(weakref.ref(module, forget), core.brick(name), None if layer is None else core.layer(layer), is_parent,
                                  index_of(weight_of(module)[1]), *work)


def around(path, modules):
    """Names and classes of the modules that hold it."""
    names = path.split(".")
    outside = [".".join(names[:count]) for count in range(len(names))] if path else []
    return [word for outer in outside if outer in modules for word in (outer.rpartition(".")[2], type(modules[outer]).__name__)]


def add_all(outer):
    """The outermost module with all that is in it; gives the number of layers."""
    modules = dict(outer.named_modules())
    layers = layers_of(modules)
    for path, module in modules.items():
        add(path, module, around(path, modules), layers.get(path))
    return len(layers)


def describe(module, outer):
    """Called for a module that is not known. The profiler is made with the first that is to be recorded."""
    try:
        if can_be_recorded(outer):
            _library.open_by_environment()
        layers = add_all(outer)
        if id(module) not in known:  # one that is held in another way
            add("", module, (), None)
        if _library.current() is not None:
            tell_what_was_met(outer, layers)
    except Exception as error:  # the program is not to notice
        say(f"{type(outer).__name__} is not recorded: {error}")


# --- What a step is ---


def weight_of(module):
    """The first weight and what it is, by which a move to another type or device is seen."""
    weight = next(torch.nn.Module.parameters(module), None)  # a module's own may compute
    return (lambda: None, None) if weight is None else (weakref.ref(weight), (weight.dtype, weight.device))


def index_of(kind):
    """Of the GPU that it lies on."""
    if kind is None:
        return NO_WEIGHTS
    device = kind[1]
    return (device.index or 0) if device.type == "cuda" else ON_PROCESSOR


def is_known(kind):
    """Whether modules of it are recorded."""
    if kind is None:  # one without weights does where no GPU is used
        return not (hasattr(torch, "cuda") and torch.cuda.is_initialized())
    where = kind[1].type
    if where == "cpu" or (where == "cuda" and current_stream() is not None):
        return True
    say(f"a model is on the device {where} of this torch: only models on the processor and on CUDA are recorded")
    return False


def can_be_recorded(module):
    return is_known(weight_of(module)[1])


def kind_of(module):
    """What it is now. What is known of its modules is found out again where it has moved."""
    first, kind = kinds.get(id(module)) or weight_of(module)
    weight = first()
    if weight is not None and (weight.dtype, weight.device) != kind:
        add_all(module)
        first, kind = weight_of(module)
    kinds[id(module)] = first, kind
    return kind


def device_of(module):
    index = index_of(weight_of(module)[1])
    if index >= 0:
        return torch.cuda.get_device_name(index)
    threads = torch.get_num_threads()
    return f"cpu, {threads} thread{'s' if threads > 1 else ''}"


def tell_what_was_met(module, layers):
    """Of the first model to `plumb run`; of the deepest to whoever reads the report."""
    global most_layers
    profiler = _library.current()
    if most_layers < 0:
        tell("engine", f"PyTorch {torch.__version__}\tPYTHONPATH")
        if profiler.path:
            tell("recording", f"{os.stat(profiler.path).st_ino}\t{profiler.path}")
        profiler.describe("engine", f"PyTorch {torch.__version__}, not built for this profiler")
        profiler.describe("device", device_of(module))
    if layers > most_layers:
        most_layers = layers
        profiler.describe("model", type(module).__name__)
        if layers:
            profiler.describe("layers", layers)


@functools.lru_cache(None)
def names_of(kind):
    """Of the parameters of its forward()."""
    try:
        return tuple(inspect.signature(kind.forward).parameters)[1:]
    except (AttributeError, TypeError, ValueError):  # of torch.jit it has none
        return ()


def tokens_of(given, values):
    """How many tokens each of how many sequences has; None where the inputs do not say so."""
    tensors = [value for value in values if isinstance(value, torch.Tensor)]
    tensors[:0] = [given[name] for name in INPUTS if isinstance(given.get(name), torch.Tensor)]
    if not tensors:
        return None
    shape = tensors[0].shape[:-1] if tensors[0].is_floating_point() else tensors[0].shape  # the last dimension is the model's width
    if len(shape) > 2:
        return None
    return shape[-1] if shape else 1, shape[0] if len(shape) == 2 else 1


def kv_length_of(given, tokens):
    """0: not known. Nothing is asked that a device would have to answer."""
    before = next((given[name] for name in POSITIONS if type(given.get(name)) is int), None)
    if before is not None:
        return before + tokens if 0 <= before < 2**63 else 0
    mask, past = given.get("attention_mask"), given.get("past_key_values")
    if isinstance(mask, torch.Tensor) and mask.dim() == 2:
        return mask.shape[-1]
    try:
        return past[0][0].shape[-2] + tokens if isinstance(past, tuple) else 0
    except Exception:  # a cache of another form
        return 0


def step_of(module, arguments, keywords):
    """None: nothing in it is recorded; True: its bricks, which go into a graph, and no step."""
    values = (*arguments, *keywords.values())
    if torch._C._get_tracing_state() is not None or any(type(value).__module__ == "torch.fx.proxy" for value in values):
        return None
    kind = kind_of(module)
    if not is_known(kind):
        return None
    given = {**dict(zip(names_of(type(module)), arguments)), **keywords}
    found = tokens_of(given, values)
    capturing = index_of(kind) >= 0 and is_captured()
    if found is None:
        step = core.step("none")
    else:
        tokens, sequences = found
        # A graph is replayed at other lengths of the cache.
        step = core.step("decode" if tokens == 1 else "prefill", tokens=tokens * sequences, sequences=sequences,
                         kv_length=0 if capturing else kv_length_of(given, tokens))
    if capturing:
        captured.step = step
        return True
    return step


def outermost(module, arguments):
    """What step_of() says. REQUIRES: called by a hook."""
    keywords = sys._getframe(1).f_locals.get("kwargs") or {}  # torch does not hand them to the hooks of all modules
    try:
        return step_of(module, arguments, keywords)
    except Exception as error:  # the program is not to notice
        say(f"a step of {type(module).__name__} is not recorded: {error}")
        return None
