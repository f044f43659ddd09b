"""How to draw operators with windows: convolutions and pools, dense and grouped, in one to three dims."""

from __future__ import annotations

from cgorl.ir.node import Value
from cgorl.rules.pattern import Apply
from cgorl.rules.sampling.attributes import Attributes, Unfit
from cgorl.rules.sampling.sketch import Shape, Sketch

Made = tuple[list[Value | None], int]
Ints = tuple[int, ...]


def _dims(s: Sketch, a: Attributes, *shapes: Shape | None) -> int:
    """How many spatial dims: as bound attributes or known shapes say, else mostly two."""
    said = a.length("kernel_shape", "strides", "dilations", "pads")
    if said is not None:
        return said
    return next((len(x) - 2 for x in shapes if x is not None and len(x) > 2), s.rng.choice((1, 1, 2, 2, 2, 2, 2, 3)))


def _plan(
    s: Sketch, a: Attributes, nd: int, size: Ints | None, want: Ints | None, kernel: Ints | None, most: bool
) -> tuple[Ints, Ints, Ints]:
    """Kernel, strides and dilations that can take `size` to `want`, as far as they are free."""
    fixed = [a.fixed(n) for n in ("kernel_shape", "strides", "dilations")]
    if any(f is not None and len(f) != nd for f in fixed) or (kernel is not None and len(kernel) != nd):
        raise Unfit("attributes of different rank")
    found: list[tuple[int, int, int]] = []
    for i in range(nd):
        k = r = d = 1
        for _ in range(12):
            k = kernel[i] if kernel else fixed[0][i] if fixed[0] else _kernel(s, size[i] if size else None)
            r = fixed[1][i] if fixed[1] else s.rng.choice((1, 1, 1, 2, 2, 3))
            d = fixed[2][i] if fixed[2] else s.rng.choice((1, 1, 1, 1, 2, 3)) if k > 1 else s.rng.choice((1, 1, 1, 1, 2))
            if size is None or want is None:
                break
            if 0 <= (want[i] - 1) * r + (k - 1) * d + 1 - size[i] <= (k - 1 if most else 2 * (k - 1) * d):
                break
        found.append((k, r, d))
    return tuple(f[0] for f in found), tuple(f[1] for f in found), tuple(f[2] for f in found)


def _kernel(s: Sketch, size: int | None) -> int:
    if size is not None and s.coin(0.12):
        return max(1, size)
    return s.rng.choice((1, 1, 2, 3, 3, 3, 5) if s.coin(0.9) else (1, 4, 7))


def _window(s: Sketch, a: Attributes, nd: int, size: Ints | None, want: Ints | None, kernel: Ints | None, most: bool) -> tuple[Ints, Ints]:
    """Draws kernel, strides, dilations and pads; returns the input's size and the kernel. `most`: pads stay below the kernel."""
    if s.coin(0.15) and kernel is None and a.fixed("kernel_shape") is None:
        kernel = (1,) * nd
    k, r, d = _plan(s, a, nd, size, want, kernel, most)
    k = a("kernel_shape", k, lambda: k)
    d = a("dilations", (1,) * nd, lambda: d)
    r = a("strides", (1,) * nd, lambda: r)
    if not len(k) == len(d) == len(r) == nd:
        raise Unfit("attributes of different rank")
    reach = [(k[i] - 1) * d[i] + 1 for i in range(nd)]

    def pads() -> Ints:
        lead, tail = [0] * nd, [0] * nd
        style = s.rng.random()
        for i in range(nd):
            limit = k[i] - 1 if most else reach[i] - 1 + (style > 0.95)
            if size is not None and want is not None and 0 <= (total := (want[i] - 1) * r[i] + reach[i] - size[i]) <= 2 * limit:
                total = min(total + (s.rng.randrange(r[i]) if s.coin(0.3) else 0), 2 * limit)
                lead[i] = total // 2 if s.coin(0.6) else s.rng.randint(max(0, total - limit), min(total, limit))
                tail[i] = total - lead[i]
            elif style < 0.35:
                pass
            elif style < 0.65:
                lead[i] = tail[i] = min(limit, (reach[i] - 1) // 2)
            else:
                lead[i], tail[i] = s.rng.randint(0, min(limit, 2)), s.rng.randint(0, min(limit, 2))
        return (*lead, *tail)

    p = a("pads", (0,) * (2 * nd), pads)
    if len(p) != 2 * nd or min(p, default=0) < 0:
        raise Unfit("pads of another rank")
    if size is None:
        made = []
        for i in range(nd):
            total = p[i] + p[nd + i]
            least = max(1, reach[i] - total)
            exact = (want[i] - 1) * r[i] + reach[i] - total + s.rng.randrange(r[i]) if want is not None else 0
            free = s.rng.choice((5, 5, 7, 7, least)) if s.symbolic else s.rng.choice((least, least + 1, least + 2, s.rng.randint(3, 6)))
            made.append(exact if exact >= least else max(least, free))
        size = tuple(made)
    a.drawn_pads = p
    if "auto_pad" not in a.said:
        _automatic(s, a, nd, size, k, r, d, p)
    return size, k


def _automatic(s: Sketch, a: Attributes, nd: int, size: Ints, k: Ints, r: Ints, d: Ints, p: Ints) -> None:
    """Sometimes says the pads by name."""
    if not s.coin(0.25) or a.term.op == "ConvTranspose":
        return
    if not any(p):
        a.values |= {"pads": None, "auto_pad": "VALID"}
    elif all(x == 1 for x in d) and all(x <= y for x, y in zip(r, k, strict=True)):
        totals = [max(0, (-(-n // x) - 1) * x + y - n) for n, x, y in zip(size, r, k, strict=True)]
        if p == (*(t // 2 for t in totals), *(t - t // 2 for t in totals)):
            a.values |= {"pads": None, "auto_pad": "SAME_UPPER"}


def _sees(size: int, k: int, r: int, d: int, lead: int, tail: int, ceil: int) -> bool:
    """Whether every window along one axis holds some of the input."""
    room = size + lead + tail - (k - 1) * d - 1
    count = (-(-room // r) if ceil else room // r) + 1
    return all(any(0 <= i * r - lead + j * d < size for j in range(k)) for i in range(count))


def conv(s: Sketch, t: Apply, a: Attributes, want: Shape | None) -> Made:
    """A convolution: dense, grouped or depthwise."""
    ws = s.known(t.args[1])
    nd = _dims(s, a, s.known(t.args[0]), ws, want)
    out = want if want is not None and len(want) == nd + 2 else None
    x = s.made(t.args[0], (s.batch(), s.size(), *(s.rng.randint(3, 6) if out is None else out[2 + i] for i in range(nd))))
    if x is not None:
        if len(s.dims(x)) < 3:
            raise Unfit("no spatial dims")
        if len(s.dims(x)) - 2 != nd:
            nd, out = len(s.dims(x)) - 2, None
    xs = None if x is None else s.dims(x)
    if xs is not None:
        divisors = [g for g in range(1, xs[1] + 1) if xs[1] % g == 0] or [1]
        group = a("group", 1, lambda: max(1, xs[1] // ws[1]) if ws else s.rng.choice((1, 1, *divisors, xs[1] or 1)))
    else:
        group = a("group", 1, lambda: s.rng.choice((1, 1, 1, 2, 3, 4)))
    factor = s.leanings.factor(t.args[1]) if s.coin(0.9) else 1
    channels = xs[1] if xs is not None else ws[1] * group if ws else group * factor * s.rng.choice((1, 1, 2, 3))
    if channels % group or not channels:
        raise Unfit("channels that the groups do not divide")
    outs = ws[0] if ws else out[1] if out is not None and out[1] % group == 0 else group * factor * s.rng.choice((1, 1, 2, 3))
    if not ws and s.leanings.keeps_channels(t.args[0], t.args[1]) and s.coin(0.85):
        outs = channels
    size, kernel = _window(s, a, nd, None if xs is None else xs[2:], None if out is None else out[2:], ws[2:] if ws else None, False)
    if x is None:
        x = s.make(t.args[0], (s.batch() if out is None else out[0], channels, *size))
    w = s.make(t.args[1], (outs, channels // group, *kernel))
    if s.coin(0.3) and "kernel_shape" not in a.said:
        a.values["kernel_shape"] = None
    return [x, w, *(s.make(arg, (s.dims(w)[0],)) for arg in t.args[2:])], 1


def conv_transpose(s: Sketch, t: Apply, a: Attributes, want: Shape | None) -> Made:
    """A transposed convolution."""
    xs, ws = s.known(t.args[0]), s.known(t.args[1])
    nd = _dims(s, a, xs, ws, want)
    x = s.make(t.args[0], (s.batch(), s.rng.choice((1, 2, 3, 4)), *(s.rng.randint(1, 5) for _ in range(nd))))
    xs = s.dims(x)
    if len(xs) < 3:
        raise Unfit("no spatial dims")
    nd = len(xs) - 2
    group = a("group", 1, lambda: s.rng.choice([1, 1] + [g for g in range(1, xs[1] + 1) if xs[1] % g == 0]))
    k = ws[2:] if ws else tuple(_kernel(s, None) for _ in range(nd))
    k = a("kernel_shape", k, lambda: k)
    d = a("dilations", (1,) * nd, lambda: tuple(s.rng.choice((1, 1, 1, 2)) for _ in range(nd)))
    r = a("strides", (1,) * nd, lambda: tuple(s.rng.choice((1, 1, 2, 3)) for _ in range(nd)))
    a("output_padding", None, lambda: tuple(s.rng.randrange(max(x, y)) if s.coin(0.3) else 0 for x, y in zip(r, d, strict=True)))
    room = [(xs[2 + i] - 1) * r[i] + (k[i] - 1) * d[i] for i in range(nd)]
    a("pads", (0,) * (2 * nd), lambda: tuple(s.rng.choice((0, 0, min(1, m // 2), min(2, m // 2))) for m in (*room, *room)))
    w = s.make(t.args[1], (xs[1], s.rng.choice((1, 2, 3)), *k))
    return [x, w, *(s.make(arg, (s.dims(w)[1] * group,)) for arg in t.args[2:])], 1


def pool(s: Sketch, t: Apply, a: Attributes, want: Shape | None) -> Made:
    """A pool; each window holds some of the input (onnx does not say what a window of padding alone gives)."""
    nd = _dims(s, a, s.known(t.args[0]), want)
    out = want if want is not None and len(want) == nd + 2 else None
    x = s.made(t.args[0], (s.batch(), s.size(), *(s.rng.randint(3, 6) if out is None else out[2 + i] for i in range(nd))))
    if x is not None and len(s.dims(x)) - 2 != nd:
        nd, out = len(s.dims(x)) - 2, None
    if nd < 1 or (x is not None and not s.dims(x)[1]):
        raise Unfit("no channels or spatial dims")
    xs = None if x is None else s.dims(x)
    size, k = _window(s, a, nd, None if xs is None else xs[2:], None if out is None else out[2:], None, True)
    ceil = a("ceil_mode", 0, lambda: s.rng.choice((0, 0, 0, 1)))
    r, d = a.values.get("strides", (1,) * nd), a.values.get("dilations", (1,) * nd)
    lead, tail = a.drawn_pads[:nd], a.drawn_pads[nd:]
    if not all(_sees(size[i], k[i], r[i], d[i], lead[i], tail[i], ceil) for i in range(nd)):
        raise Unfit("a window of padding alone")
    a("count_include_pad", 0, lambda: s.rng.choice((0, 1)))
    if x is None:
        head = (s.batch(), max(1, s.size())) if out is None else out[:2]
        x = s.make(t.args[0], (*head, *size))
    return [x], 1
