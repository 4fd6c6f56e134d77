"use strict";
// The numbers behind a picture: enlarged, golden and new in turn, under the pointer, plane by plane.
(() => {
  const openers = document.querySelectorAll("[data-view]");
  if (!openers.length) return;
  const bytesOf = (text) => Uint8Array.from(atob(text), (one) => one.charCodeAt(0));
  const palettes = bytesOf(document.getElementById("main").dataset.palettes);
  const colourOf = { values: 0, signed: 256, shares: 512 };
  const OFF = 65535, BOUND = 18, NO_NUMBER = 35, LAST = 33;

  const make = (tag, words, into, more = {}) => {
    const node = document.createElement(tag);
    if (words) node.textContent = words;
    Object.assign(node, more);
    into?.append(node);
    return node;
  };
  const short = (value) => {
    if (!Number.isFinite(value)) return "no number";
    const size = Math.abs(value);
    if (size !== 0 && (size < 1e-4 || size >= 1e6)) return value.toExponential(3).replace(/\.?0+e/, "e").replace("e+", "e");
    return String(Number(value.toPrecision(5)));
  };
  const short2 = (value) => (value < 1e6 ? Number(value.toPrecision(2)).toLocaleString("en") : value.toExponential(1).replace(".0e", "e").replace("e+", "e"));
  const shareOf = (code) => (code === 0 ? 0 : 2 ** ((code - 32768) / 256));
  const timesOf = (code) => {
    if (code === OFF) return "no number on one side";
    if (code === 0) return "equal";
    if (code >= 65532) return "more than 3e38 \u00d7 the bound";
    const share = shareOf(code);
    // Shares are kept to half a percent.
    if (code > 32768) return share < 1.05 ? "just beyond the bound" : `about ${short2(share)} \u00d7 the bound`;
    return share < 0.001 ? "less than 0.1 % of the bound" : `about ${short2(Math.min(100 * share, 99))} % of the bound`;
  };
  const classOf = (code) => {
    if (code === OFF) return NO_NUMBER;
    if (code === 0) return 0;
    return Math.min(Math.max(Math.floor((code - 32768) / 256) + BOUND, 1), LAST);
  };

  // Cells of several elements hold the worst of them.
  const rangeOf = (cell, cells, extent) => {
    const first = Math.floor((cell * extent) / cells), last = Math.floor(((cell + 1) * extent) / cells) - 1;
    return last > first ? `${first}:${last + 1}` : String(first);
  };
  const within = (value, least, most) => Math.min(Math.max(value, least), most);

  // The numbers of a view, and what is said of a cell of one of its planes.
  const numbersOf = (view) => {
    const [rows, columns] = view.cells, [low, high] = view.scale, count = rows * columns;
    const planes = view.planes.map((text) => {
      const all = new Uint16Array(bytesOf(text).buffer);
      return { golden: all.subarray(0, count), new: all.subarray(count, 2 * count), share: all.subarray(2 * count) };
    });
    // Numbers are kept in 65,535 steps, and no digit below a step is shown.
    const unit = 10 ** Math.ceil(Math.log10((high - low) / 65534 || 1));
    const valueOf = (level) => (level === OFF ? NaN : low + (high - low) * (level / 65534));
    const words = (level) => (level === OFF ? "no number" : view.cut && level === 0 ? `${short(low)} (or less)` : view.cut && level === 65534 ? `${short(high)} (or more)` : short(Math.round(valueOf(level) / unit) * unit));
    const saidOf = (at, row, column) => {
      const place = [...view.index], k = row * columns + column, plane = planes[at];
      if (view.axes[0] !== null) place[view.axes[0]] = rangeOf(row, rows, view.extents[0]);
      place[view.axes[1]] = rangeOf(column, columns, view.extents[1]);
      if (view.axis !== null) place[view.axis] = view.positions[at];
      const each = view.each > 1 ? "the worst of " : "";
      return `${each}[${place.join(", ")}]: ${view.sides[0]} ${words(plane.golden[k])}, ${view.sides[1]} ${words(plane.new[k])}, ${timesOf(plane.share[k])}`;
    };
    return { planes, valueOf, saidOf };
  };

  const open = (view, opener) => {
    const [rows, columns] = view.cells, count = rows * columns;
    const isLine = view.axes[0] === null;
    const { planes, valueOf, saidOf } = numbersOf(view);
    // A thin defect is seen in the difference first.
    let at = view.shown, what = isLine ? "both" : "signed", row = 0, column = 0, split = 0.5;
    let rect = [0, rows, 0, columns];

    const dialog = make("dialog", "", document.body, { className: "look" });
    dialog.setAttribute("aria-label", `${view.name}, enlarged`);
    const head = make("div", "", dialog, { className: "look-head" });
    make("b", view.name + (view.part ? `, ${view.part} part` : ""), head);
    const modes = isLine ? [["both", "both", "g"]] : [["golden", view.sides[0], "g"], ["new", view.sides[1], "n"], ["signed", `${view.sides[1]} \u2212 ${view.sides[0]}`, "m"], ["share", "|difference| / bound", "d"], ["swipe", "Swipe", "s"]];
    const buttons = modes.map(([name, label, key]) => {
      const button = make("button", label, isLine ? null : head, { type: "button", title: `key ${key}` });
      button.addEventListener("click", () => { still(); what = name; draw(); });
      return button;
    });
    let timer = 0;
    const still = () => { clearInterval(timer); timer = 0; blinker.setAttribute("aria-pressed", "false"); };
    const flip = () => { what = what === "golden" ? "new" : "golden"; draw(); };
    const blinker = make("button", "Blink", isLine ? null : head, { type: "button", title: "key b; the space bar flips once" });
    blinker.setAttribute("aria-pressed", "false");
    const blink = () => {
      if (timer) return still();
      flip();
      timer = setInterval(flip, 600);
      blinker.setAttribute("aria-pressed", "true");
    };
    blinker.addEventListener("click", blink);
    const worst = make("button", "Worst", head, { type: "button", title: "key w" });
    const closer = make("button", "Closer", head, { type: "button", title: "key +" });
    const wider = make("button", "All", head, { type: "button", title: "key 0" });
    const shut = make("button", "Close", head, { type: "button", title: "key Esc" });

    const frame = make("div", "", dialog, { className: "look-frame" });
    const canvas = make("canvas", "", frame, { tabIndex: 0 });
    canvas.setAttribute("role", "img");
    const seam = make("div", "", frame, { className: "look-seam", hidden: true });
    const axes = make("p", "", dialog, { className: "soft small look-axes" });
    const scale = make("div", "", dialog, { className: "look-scale small", hidden: isLine });
    const [least, bar, most] = [make("span", "", scale), make("canvas", "", scale, { width: 240, height: 1, ariaHidden: "true" }), make("span", "", scale)];
    const swipe = make("label", "", dialog, { className: "look-slide", hidden: true });
    make("span", `${view.sides[0]} | ${view.sides[1]} `, swipe);
    const knob = make("input", "", swipe, { type: "range", min: 0, max: 100, value: 50 });
    knob.addEventListener("input", () => { split = knob.value / 100; draw(); });
    let slider = null;
    if (planes.length > 1) {
      const label = make("label", "", dialog, { className: "look-slide" });
      const name = make("span", "", label);
      slider = make("input", "", label, { type: "range", min: 0, max: planes.length - 1, value: at });
      slider.said = name;
      slider.addEventListener("input", () => { at = Number(slider.value); draw(); });
    }
    const output = make("output", "", dialog);
    output.setAttribute("aria-live", "polite");
    make("p", `Arrows move the mark, ${slider ? "[ and ] change the plane, " : ""}+ goes closer, 0 shows all, w finds the worst${isLine ? "" : ", g, n, m, d choose the picture, s swipes, b blinks, space flips"}.`, dialog, { className: "soft small" });

    const say = () => {
      output.textContent = saidOf(at, row, column);
      if (slider) {
        slider.said.textContent = `axis ${view.axis}: ${view.positions[at]} `;
        slider.value = at;
      }
    };

    const shape = (ratio) => {
      canvas.style.aspectRatio = String(ratio);
      frame.style.width = `min(100%, ${Math.round(60 * ratio)}vh)`;
    };
    const limitOf = () => {
      // At least the bound, so that noise is pale beside a defect.
      let limit = 1;
      for (const one of planes) for (const code of one.share) if (code !== OFF) limit = Math.max(limit, shareOf(code));
      return limit;
    };
    const sayAxes = () => {
      const [top, bottom, left, right] = rect;
      const along = (first, last, cells, extent) => `${Math.floor((first * extent) / cells)} to ${Math.floor((last * extent) / cells) - 1}`;
      const across = `across: axis ${view.axes[1]}, ${along(left, right, columns, view.extents[1])}`;
      axes.textContent = isLine ? across : `down: axis ${view.axes[0]}, ${along(top, bottom, rows, view.extents[0])}; ${across}`;
    };
    const drawScale = () => {
      const context = bar.getContext("2d"), image = context.createImageData(240, 1), times = " \u00d7 the bound";
      const from = what === "share" ? colourOf.shares : what === "signed" ? colourOf.signed : colourOf.values;
      const last = what === "share" ? LAST : 254;
      for (let i = 0; i < 240; i++) {
        const colour = from + Math.round((i / 239) * last);
        image.data.set(palettes.subarray(4 * colour, 4 * colour + 4), 4 * i);
      }
      context.putImageData(image, 0, 0);
      const limit = what === "signed" ? short2(limitOf()) : "";
      least.textContent = what === "share" ? "equal" : what === "signed" ? `\u2212${limit}${times}` : short(view.scale[0]);
      most.textContent = what === "share" ? "32,768\u00a0\u00d7 the bound and more" : what === "signed" ? `+${limit}${times}` : short(view.scale[1]);
    };
    const drawMap = () => {
      const [top, bottom, left, right] = rect, wide = right - left, tall = bottom - top, plane = planes[at];
      canvas.width = wide;
      canvas.height = tall;
      const limit = what === "signed" ? limitOf() : 1, seamAt = Math.round(split * wide);
      const context = canvas.getContext("2d"), image = context.createImageData(wide, tall);
      for (let i = 0; i < tall; i++) for (let j = 0; j < wide; j++) {
        const k = (i + top) * columns + j + left;
        let colour;
        if (what === "share") colour = colourOf.shares + classOf(plane.share[k]);
        else if (what === "signed") {
          const code = plane.share[k], moved = ((code & 1 ? -1 : 1) * shareOf(code)) / limit;
          colour = colourOf.signed + (code === OFF ? 255 : Math.round(127 + 127 * moved));
        } else {
          const side = what !== "swipe" ? what : j < seamAt ? "golden" : "new";
          const level = plane[side][k];
          colour = colourOf.values + (level === OFF ? 255 : Math.round(level / 258.007874));
        }
        image.data.set(palettes.subarray(4 * colour, 4 * colour + 4), 4 * (i * wide + j));
      }
      context.putImageData(image, 0, 0);
      seam.style.left = `${(100 * seamAt) / wide}%`;
      shape(within((wide * view.extents[1] * rows) / (tall * view.extents[0] * columns), 0.4, 4));
    };

    const drawLine = () => {
      const [, , left, right] = rect, wide = right - left, plane = planes[at];
      const W = (canvas.width = 1600), H = (canvas.height = 700), upper = 470, lower = 500;
      const context = canvas.getContext("2d"), style = getComputedStyle(document.documentElement);
      const shown = [];
      for (let k = left; k < right; k++) for (const side of ["golden", "new"]) if (plane[side][k] !== OFF) shown.push(valueOf(plane[side][k]));
      let least = Infinity, most = -Infinity;
      for (const one of shown) { least = Math.min(least, one); most = Math.max(most, one); }
      const x = (k) => ((k - left + 0.5) / wide) * W, y = (value) => upper - 10 - ((value - least) / (most - least || 1)) * (upper - 30);
      for (const [side, colour, thick] of [["golden", style.getPropertyValue("--bar-in"), 6], ["new", style.getPropertyValue("--bar-out"), 2.5]]) {
        context.strokeStyle = colour;
        context.lineWidth = thick;
        context.beginPath();
        let down = false;
        for (let k = left; k < right; k++) {
          const value = valueOf(plane[side][k]);
          if (Number.isNaN(value)) { down = false; continue; }
          if (down) context.lineTo(x(k), y(value)); else context.moveTo(x(k), y(value));
          down = true;
        }
        context.stroke();
      }
      let top = 256;
      for (let k = left; k < right; k++) if (plane.share[k] !== OFF) top = Math.max(top, plane.share[k] - 32768);
      const high = (code) => (code === OFF ? 1 : Math.max(0, (code - 32768 + 1536) / (top + 1536)));
      for (let k = left; k < right; k++) {
        const code = plane.share[k];
        if (!code) continue;
        context.fillStyle = code === OFF ? "#cc3399" : style.getPropertyValue(code > 32768 ? "--bar-out" : "--bar-in");
        const tall = high(code) * (H - lower);
        context.fillRect(((k - left) / wide) * W, H - tall, Math.max(W / wide, 1), tall);
      }
      context.strokeStyle = style.getPropertyValue("--differ");
      context.setLineDash([10, 6]);
      context.beginPath();
      const bound = H - high(32768) * (H - lower);
      context.moveTo(0, bound);
      context.lineTo(W, bound);
      context.stroke();
      context.setLineDash([]);
      context.fillStyle = style.getPropertyValue("--ink");
      context.font = "22px system-ui, sans-serif";
      context.fillText(short(most), 6, 24);
      context.fillText(short(least), 6, upper - 12);
      context.fillText("bound", 6, bound - 6);
      shape(W / H);
    };

    const mark = () => {
      const context = canvas.getContext("2d");
      const [top, , left, right] = rect;
      if (isLine) {
        context.strokeStyle = getComputedStyle(document.documentElement).getPropertyValue("--ink");
        context.lineWidth = 1.5;
        context.strokeRect(((column - left + 0.5) / (right - left)) * canvas.width - 3, 0, 6, canvas.height);
      } else {
        // Two colours: it is seen on any ground.
        context.fillStyle = (row + column) % 2 ? "#fff" : "#000";
        context.fillRect(column - left, row - top, 1, 1);
      }
    };
    const draw = (marked = false) => {
      seam.hidden = swipe.hidden = what !== "swipe";
      if (isLine) drawLine(); else { drawMap(); drawScale(); }
      sayAxes();
      if (marked) mark();
      modes.forEach(([name], i) => buttons[i].setAttribute("aria-pressed", String(name === what)));
      canvas.setAttribute("aria-label", `${view.name}: ${modes.find(([name]) => name === what)[1]}`);
      say();
    };
    const near = (cell, span, cells) => {
      const first = within(Math.round(cell - span / 2), 0, cells - span);
      return [first, first + span];
    };
    const closerTo = () => {
      const tall = Math.max(Math.min(rows, 4), Math.ceil((rect[1] - rect[0]) / 2));
      const wide = Math.max(Math.min(columns, 8), Math.ceil((rect[3] - rect[2]) / 2));
      rect = [...near(row, tall, rows), ...near(column, wide, columns)];
      draw(true);
    };
    const all = () => { rect = [0, rows, 0, columns]; draw(true); };
    const toWorst = () => {
      let best = -1;
      planes.forEach((plane, p) => plane.share.forEach((code, k) => {
        if (code > best) { best = code; at = p; row = Math.floor(k / columns); column = k % columns; }
      }));
      if (isLine && columns > 80) rect = [0, 1, ...near(column, 80, columns)];
      draw(true);
    };
    worst.addEventListener("click", toWorst);
    closer.addEventListener("click", closerTo);
    wider.addEventListener("click", all);
    shut.addEventListener("click", () => dialog.close());
    canvas.addEventListener("pointermove", (event) => {
      const box = canvas.getBoundingClientRect();
      row = within(rect[0] + Math.floor(((event.clientY - box.top) / box.height) * (rect[1] - rect[0])), rect[0], rect[1] - 1);
      column = within(rect[2] + Math.floor(((event.clientX - box.left) / box.width) * (rect[3] - rect[2])), rect[2], rect[3] - 1);
      say();
    });
    const move = (down, right) => {
      row = within(row + down, 0, rows - 1);
      column = within(column + right, 0, columns - 1);
      if (row < rect[0] || row >= rect[1]) rect = [...near(row, rect[1] - rect[0], rows), rect[2], rect[3]];
      if (column < rect[2] || column >= rect[3]) rect = [rect[0], rect[1], ...near(column, rect[3] - rect[2], columns)];
      draw(true);
    };
    const plane = (by) => { at = within(at + by, 0, planes.length - 1); draw(true); };
    const keys = {
      ArrowUp: () => move(-1, 0), ArrowDown: () => move(1, 0), ArrowLeft: () => move(0, -1), ArrowRight: () => move(0, 1),
      "[": () => plane(-1), "]": () => plane(1), "+": closerTo, 0: all, w: toWorst,
    };
    if (!isLine) {
      Object.assign(keys, { b: blink, " ": () => { still(); flip(); } });
      for (const [name, , key] of modes) keys[key] = () => { still(); what = name; draw(); };
    }
    dialog.addEventListener("keydown", (event) => {
      event.stopPropagation();
      if (event.ctrlKey || event.metaKey || event.altKey || !keys[event.key]) return;
      // A slider and a button have keys of their own.
      if ((event.target === slider || event.target === knob) && event.key.startsWith("Arrow")) return;
      if (event.target instanceof HTMLButtonElement && event.key === " ") return;
      event.preventDefault();
      keys[event.key]();
    });
    dialog.addEventListener("close", () => { clearInterval(timer); dialog.remove(); opener.focus(); });
    dialog.showModal();
    toWorst();
    all();
    canvas.focus();
  };

  // The same under the pointer on the small pictures of that plane, in the line below them.
  const read = (opener) => {
    const images = opener.closest("section, details").querySelectorAll("image[data-axes]");
    if (!images.length) return;
    const line = make("span", "", opener.parentNode, { className: "under soft small" });
    let view, saidOf;
    const say = (event) => {
      if (!view) { view = JSON.parse(opener.dataset.view); ({ saidOf } = numbersOf(view)); }
      const image = event.currentTarget, box = image.getBoundingClientRect();
      const parts = [(event.clientY - box.top) / box.height, (event.clientX - box.left) / box.width];
      // What is much taller than wide lies on its side.
      if (image.dataset.axes.split(",")[0] !== String(view.axes[0])) parts.reverse();
      const [row, column] = parts.map((part, i) => within(Math.floor(part * view.cells[i]), 0, view.cells[i] - 1));
      line.textContent = saidOf(view.shown, row, column);
    };
    for (const image of images) {
      image.addEventListener("pointermove", say);
      image.addEventListener("pointerleave", () => { line.textContent = ""; });
    }
  };
  for (const opener of openers) {
    opener.addEventListener("click", () => open(JSON.parse(opener.dataset.view), opener));
    read(opener);
  }
})();
