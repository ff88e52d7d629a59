(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const root = document.documentElement;
  const $ = (selector, within = document) => within.querySelector(selector);
  const $$ = (selector, within = document) => [...within.querySelectorAll(selector)];
  const dark = matchMedia("(prefers-color-scheme:dark)");

  /* Text from the data only ever becomes text. */
  function make(tag, attributes = {}, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (value === false || value === null || value === undefined) continue;
      if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
      else if (name.startsWith("--")) element.style.setProperty(name, value);
      else element.setAttribute(name, value === true ? "" : value);
    }
    element.append(...children.filter((child) => child !== null && child !== undefined));
    return element;
  }
  const fill = (element, ...children) => element.replaceChildren(...children.filter((child) => child !== null && child !== undefined));
  const bytes = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const floats = (text) => new Float32Array(bytes(text).buffer);

  /* ---- what is known ---- */
  const points = { ...data.points, coordinates: floats(data.points.coordinates), proportions: data.points.proportions && floats(data.points.proportions) };
  const { n, images } = points, total = n * images;
  const columns = data.columns.map((column) => ({ ...column, codes: column.codes && bytes(column.codes), values: column.values && floats(column.values) }));
  for (const column of columns) {
    if (column.kind !== "classes") continue;
    const k = column.classes.length;
    column.names = [...column.classes, column.others === 1 ? "1 other" : column.others + " others", "missing"];
    column.count = new Array(k + 2).fill(0);
    for (const code of column.codes) column.count[code]++;
    column.hidden = new Set();
  }
  const name = (point) => (data.labels && data.labels[point]) || "point " + point;
  const number = (value) => (Number.isFinite(value) ? (value !== 0 && (Math.abs(value) >= 1e6 || Math.abs(value) < 1e-3) ? value.toExponential(3) : String(Number(value.toPrecision(5)))) : "–");
  const valueOf = (column, point) => column.least + column.values[point] * (column.greatest - column.least);
  function told(column, point) {
    if (column.kind === "classes") return column.codes[point] === column.classes.length ? "(one of " + column.names[column.codes[point]] + ")" : column.names[column.codes[point]];
    if (Number.isNaN(column.values[point])) return "missing";
    const value = valueOf(column, point);
    return column.whole ? String(Math.round(value)) : number(value);
  }
  const original = (i, axis) => points.middle[axis] + points.unit * points.coordinates[axis * total + i];

  /* ---- colours: distinct for colour-blind readers, on light and on dark paper ---- */
  const hex = (text) => [1, 3, 5].map((place) => parseInt(text.slice(place, place + 2), 16));
  const CLASSES = {
    light: data.colors.light.map(hex), dark: data.colors.dark.map(hex), scale: data.colors.scale.map(hex),
  };
  const css = (variable) => getComputedStyle(root).getPropertyValue(variable).trim();
  function scaleColor(share) {
    const bounds = dark.matches ? [0.33, 1] : [0, 0.86], place = (bounds[0] + share * (bounds[1] - bounds[0])) * (CLASSES.scale.length - 1);
    const low = Math.min(CLASSES.scale.length - 2, Math.floor(place)), rest = place - low;
    return CLASSES.scale[low].map((value, channel) => Math.round(value + rest * (CLASSES.scale[low + 1][channel] - value)));
  }
  const quietColor = () => hex(css("--c8"));
  function classStyle(column, code) {
    const colors = dark.matches ? CLASSES.dark : CLASSES.light;
    return code >= column.classes.length ? [...quietColor(), 0] : [...colors[code % colors.length], Math.floor(code / colors.length) % 3];
  }
  const rgb = (color) => "rgb(" + color.slice(0, 3).join(",") + ")";
  function recolor() {
    const column = columns[state.color];
    map.paper = hex(css("--paper")); map.ink = css("--ink"); map.quiet = css("--quiet"); map.mark = css("--mark");
    if (!column) map.styles = [[...hex(css("--c0")), 0]];
    else if (column.kind === "classes") map.styles = column.names.map((_, code) => classStyle(column, code));
    else map.styles = [...Array.from({ length: 255 }, (_, place) => [...scaleColor(place / 254), 0]), [...quietColor(), 2]];
    for (let point = 0; point < n; point++) {
      let code = 0;
      if (column && column.kind === "classes") code = column.codes[point];
      else if (column) {
        const [low, high] = column.range, share = (valueOf(column, point) - low) / (high - low || 1);
        code = Number.isNaN(share) ? 255 : Math.round(254 * Math.min(1, Math.max(0, share)));
      }
      for (let i = point * images; i < (point + 1) * images; i++) map.style[i] = code;
    }
    filter();
  }
  /* A class that was put away stays away whatever column gives the colours. */
  function filter() {
    let count = 0;
    for (let point = 0; point < n; point++) {
      let kept = 1;
      for (const column of columns) if (column.hidden && column.hidden.has(column.codes[point])) kept = 0;
      count += kept;
      for (let i = point * images; i < (point + 1) * images; i++) map.shown[i] = kept;
    }
    root.dataset.shown = String(count);
    map.changed();
  }

  /* ---- the address says what is shown ---- */
  const state = { point: null, from: null, color: data.color, find: "" };
  const address = (changes) => {
    const next = { ...state, ...changes }, parts = [];
    if (next.from !== null && next.point !== null) parts.push("from=" + next.from);
    if (next.point !== null) parts.push("point=" + next.point);
    if (next.color !== data.color) parts.push("color=" + encodeURIComponent(next.color < 0 ? "" : columns[next.color].name));
    if (next.find) parts.push("find=" + encodeURIComponent(next.find));
    return "#" + parts.join("&");
  };
  function readAddress() {
    const given = new Map();
    for (const part of location.hash.slice(1).split("&")) {
      const at = part.indexOf("=");
      if (at < 0) continue;
      try { given.set(part.slice(0, at), decodeURIComponent(part.slice(at + 1))); } catch { /* not ours */ }
    }
    const index = (key) => { const value = given.has(key) && given.get(key) !== "" ? Number(given.get(key)) : NaN; return Number.isInteger(value) && value >= 0 && value < n ? value : null; };
    state.point = index("point");
    state.from = state.point === null ? null : index("from");
    if (state.from === state.point) state.from = null;
    const color = columns.findIndex((column) => column.name === given.get("color"));
    state.color = given.has("color") ? color : data.color;
    state.find = given.get("find") || "";
    show();
  }
  function go(changes, replace = false) {
    const target = address(changes);
    if (replace) { history.replaceState(null, "", target); readAddress(); }
    else if (location.hash === target || (target === "#" && !location.hash)) readAddress();
    else location.hash = target;
  }
  let coloured = null;
  function show() {
    if (coloured !== state.color) { coloured = state.color; recolor(); legend(); }
    if ($("#find").value !== state.find) $("#find").value = state.find;
    search();
    const before = map.chosen;
    map.chosen = state.point === null ? -1 : mainImage(state.point);
    map.from = state.from === null ? -1 : mainImage(state.from);
    map.along = null;
    $("#point").hidden = state.point === null;
    $("#overview").hidden = state.point !== null;
    root.dataset.point = state.point === null ? "" : String(state.point);
    root.dataset.from = state.from === null ? "" : String(state.from);
    if (state.point !== null) { panel(state.point); if (before !== map.chosen) map.center(map.chosen); }
    map.draw();
  }
  function mainImage(point) {
    let best = point * images;
    for (let i = best; images > 1 && i < (point + 1) * images; i++) if (points.proportions[i] > points.proportions[best]) best = i;
    return best;
  }
  /* The first click chooses a point; a second one chooses another, and the cut leads from the first. */
  function choose(point) { go({ point, from: reversible() && state.point !== point ? state.point : state.from === point ? null : state.from }); }

  /* ---- the map ---- */
  const canvas = $("#map"), tip = $("#tip"), picture = new Image();
  const map = pointMap(canvas, points, { sheet: data.pictures, image: picture, labels: data.labels, painted: () => {
    root.dataset.drawn = String(map.drawn);
    root.dataset.pictures = String(map.drawnPictures);
    root.dataset.written = String(map.drawnLabels);
    if (map.hover >= 0 && !tip.hidden) placeTip(map.hover);
  } });
  function pointer() {
    const held = new Map();
    let moved = false, apart = 0, middle = null;
    const where = (event) => { const frame = canvas.getBoundingClientRect(); return [event.clientX - frame.left, event.clientY - frame.top]; };
    const pinch = () => { const [a, b] = [...held.values()]; return [Math.hypot(a[0] - b[0], a[1] - b[1]), [(a[0] + b[0]) / 2, (a[1] + b[1]) / 2]]; };
    canvas.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return;
      try { canvas.setPointerCapture(event.pointerId); } catch { /* a program's own event */ }
      held.set(event.pointerId, where(event));
      if (held.size === 1) moved = false;
      if (held.size === 2) { [apart, middle] = pinch(); moved = true; }
    });
    canvas.addEventListener("pointermove", (event) => {
      const at = where(event), before = held.get(event.pointerId);
      if (!before) { if (event.pointerType === "mouse") hover(at); return; }
      if (held.size === 1) {
        if (!moved && Math.hypot(at[0] - before[0], at[1] - before[1]) < 5) return;
        moved = true;
        canvas.classList.add("held");
        hover(null);
        map.pan(at[0] - before[0], at[1] - before[1]);
        held.set(event.pointerId, at);
      } else if (held.size === 2) {
        held.set(event.pointerId, at);
        const [now, place] = pinch();
        map.pan(place[0] - middle[0], place[1] - middle[1]);
        if (apart > 0 && now > 0) map.zoom(now / apart, place[0], place[1]);
        apart = now; middle = place;
      }
    });
    const release = (event) => {
      const was = held.delete(event.pointerId);
      canvas.classList.remove("held");
      if (!was || moved || held.size || event.type === "pointercancel") return;
      const i = map.nearest(...where(event), event.pointerType === "mouse" ? 14 : 26);
      if (i >= 0) choose(Math.floor(i / images));
      if (event.pointerType !== "mouse") tell(i);
    };
    canvas.addEventListener("pointerup", release);
    canvas.addEventListener("pointercancel", release);
    canvas.addEventListener("pointerleave", () => hover(null));
    canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      const lines = event.deltaMode === 1 ? 16 : 1;
      map.zoom(Math.exp(-Math.max(-240, Math.min(240, event.deltaY * lines)) * 0.0022), ...where(event));
      hover(where(event));
    }, { passive: false });
    canvas.addEventListener("dblclick", (event) => map.zoom(2, ...where(event)));
  }
  function hover(at) {
    const i = at ? map.nearest(at[0], at[1], 14) : -1;
    if (i !== map.hover) { map.hover = i; map.draw(); }
    canvas.classList.toggle("over", i >= 0);
    tell(i);
  }
  function tell(i) {
    if (i < 0) { tip.hidden = true; return; }
    const point = Math.floor(i / images), column = columns[state.color];
    const share = images > 1 ? Math.round(100 * points.proportions[i]) + "% of " : "";
    tip.replaceChildren(make("b", {}, share + name(point)),
      ...(data.titles && data.titles[point] ? [make("span", {}, data.titles[point])] : []),
      ...(column ? [make("span", {}, column.name + ": " + told(column, point))] : []));
    if (data.pictures && !map.drawnPictures) tip.prepend(thumbnail(point, 64));
    tip.hidden = false;
    placeTip(i);
  }
  function placeTip(i) {
    const [x, y] = map.screen(...map.at(i)), frame = canvas.parentElement;
    const left = x + 16 + tip.offsetWidth > frame.clientWidth ? x - 16 - tip.offsetWidth : x + 16;
    tip.style.left = Math.max(4, left) + "px";
    tip.style.top = Math.max(4, Math.min(y - 10, frame.clientHeight - tip.offsetHeight - 4)) + "px";
  }
  function keys() {
    const aim = () => { const i = map.nearest(canvas.clientWidth / 2, canvas.clientHeight / 2, 80); map.hover = i; map.cross = true; tell(i); map.draw(); return i; };
    canvas.addEventListener("keydown", (event) => {
      if (event.altKey || event.ctrlKey || event.metaKey) return;
      const step = event.shiftKey ? 160 : 40;
      const way = { ArrowRight: [-step, 0], ArrowLeft: [step, 0], ArrowDown: [0, -step], ArrowUp: [0, step] }[event.key];
      if (way) map.pan(...way);
      else if (event.key === "+" || event.key === "=") map.zoom(1.4);
      else if (event.key === "-") map.zoom(1 / 1.4);
      else if (event.key === "0") map.fit();
      else if (event.key === "Enter" || event.key === " ") { const i = aim(); if (i >= 0) choose(Math.floor(i / images)); }
      else return;
      event.preventDefault();
      aim();
    });
    canvas.addEventListener("focus", () => { if (canvas.matches(":focus-visible")) aim(); });
    canvas.addEventListener("blur", () => { map.cross = false; map.hover = -1; tip.hidden = true; map.draw(); });
  }
  function buttons() {
    for (const button of $$("[data-zoom]")) button.addEventListener("click", () => { const way = button.dataset.zoom; if (way === "fit") map.fit(); else map.zoom(way === "in" ? 1.5 : 1 / 1.5); });
    for (const [id, set] of [["#first", 0], ["#second", 1]]) {
      const select = $(id);
      if (select) select.addEventListener("change", () => { map.setAxes(Number($("#first").value), Number($("#second").value)); show(); });
    }
    const pictures = $("#pictures");
    if (pictures) pictures.addEventListener("change", () => { map.pictures = pictures.value; map.changed(); });
    const lines = $("#lines");
    if (lines) lines.addEventListener("change", () => { map.lines = lines.checked; map.draw(); });
  }

  /* ---- legend ---- */
  function legend() {
    const box = $("#legend"), column = columns[state.color], select = $("#color");
    if (select) select.value = String(state.color);
    if (!column) { box.replaceChildren(); return; }
    if (column.kind === "numbers") {
      const stops = Array.from({ length: 11 }, (_, place) => rgb(scaleColor(place / 10))), [low, high] = column.range;
      const missing = column.values.reduce((sum, value) => sum + (Number.isNaN(value) ? 1 : 0), 0);
      fill(box, make("div", { class: "ramp", "--stops": stops.join(",") }), make("div", { class: "ends" },
        make("span", {}, (low > column.least ? "≤ " : "") + number(low)), make("span", {}, (high < column.greatest ? "≥ " : "") + number(high))),
        missing ? make("p", { class: "note" }, missing + " missing, as grey diamonds") : null);
      return;
    }
    const rows = column.names.map((text, code) => {
      if (!column.count[code]) return null;
      const [red, green, blue, shape] = classStyle(column, code), away = column.hidden.has(code);
      const press = (only) => { toggle(column, code, only); legend(); const again = $('[data-code="' + code + '"] button' + (only ? ".only" : "")); if (again) again.focus(); };
      return make("li", { "data-code": code },
        make("button", { type: "button", "aria-pressed": String(!away), onclick: () => press(false) },
          make("i", { class: "dot shape" + shape, "--c": rgb([red, green, blue]) }), make("span", {}, text), make("small", {}, column.count[code].toLocaleString("en"))),
        make("button", { type: "button", class: "only", "aria-label": "only " + text, onclick: () => press(true) }, "only"));
    });
    fill(box, make("ul", {}, ...rows.filter(Boolean)),
      columns.some((other) => other.hidden && other.hidden.size) ? make("button", { type: "button", class: "more", onclick: () => { for (const other of columns) if (other.hidden) other.hidden.clear(); filter(); legend(); } }, "Show all") : null);
  }
  function toggle(column, code, only) {
    if (only) { column.hidden.clear(); column.names.forEach((_, other) => { if (other !== code) column.hidden.add(other); }); }
    else if (!column.hidden.delete(code)) column.hidden.add(code);
    filter();
  }

  /* ---- a point ---- */
  function thumbnail(point, side) {
    const { columns: across, width: w, height: h } = data.pictures, element = make("canvas", { width: w, height: h, class: "picture", role: "img", "aria-label": "picture of " + name(point) });
    element.style.width = (w >= h ? side : (side * w) / h) + "px";
    const draw = () => element.getContext("2d").drawImage(picture, (point % across) * w, Math.floor(point / across) * h, w, h, 0, 0, w, h);
    if (picture.complete) draw(); else picture.addEventListener("load", draw, { once: true });
    return element;
  }
  function neighbours(point) {
    const at = mainImage(point), [x, y] = map.at(at), found = [];
    let worst = Infinity;
    for (let i = 0; i < total; i++) {
      if (Math.floor(i / images) === point || !map.shown[i]) continue;
      const [a, b] = map.at(i), distance = Math.hypot(a - x, b - y);
      if (distance >= worst && found.length >= 8) continue;
      const same = found.findIndex(([, other]) => Math.floor(other / images) === Math.floor(i / images));
      if (same >= 0 && found[same][0] <= distance) continue;
      if (same >= 0) found.splice(same, 1);
      found.push([distance, i]);
      found.sort((one, other) => one[0] - other[0] || one[1] - other[1]);
      if (found.length > 8) found.pop();
      worst = found[found.length - 1][0];
    }
    return found;
  }
  function link(i, distance) {
    const point = Math.floor(i / images), [red, green, blue, shape] = map.styles[map.style[i]];
    return make("li", {}, make("a", { href: address({ point, from: state.from }), onclick: (event) => { event.preventDefault(); choose(point); } },
      data.pictures ? thumbnail(point, 26) : make("i", { class: "dot shape" + shape, "--c": rgb([red, green, blue]) }), make("span", {}, name(point)), make("small", {}, number(distance * points.unit))));
  }
  function panel(point) {
    const section = $("#point"), images_of = Array.from({ length: images }, (_, k) => point * images + k);
    const where = images_of.filter((i) => images === 1 || points.proportions[i] >= 0.005).map((i) => {
      const axes = Array.from({ length: Math.min(points.axes, 4) }, (_, axis) => number(original(i, axis))).join(", ") + (points.axes > 4 ? ", …" : "");
      return [images > 1 ? Math.round(100 * points.proportions[i]) + "% at" : "at", axes];
    });
    const facts = [...columns.map((column) => [column.name, told(column, point)]), ...where];
    fill(section,
      make("div", { class: "crumbs" }, make("a", { href: address({ point: null, from: null }), onclick: (event) => { event.preventDefault(); go({ point: null, from: null }); } }, "‹ About the map")),
      make("h2", {}, name(point)),
      data.titles && data.titles[point] ? make("p", {}, data.titles[point]) : null,
      state.from !== null ? cut() : null,
      data.pictures ? thumbnail(point, state.from === null ? 128 : 64) : null,
      make("dl", { class: "facts" }, ...facts.map(([key, value]) => make("div", {}, make("dt", {}, key), make("dd", {}, value)))),
      state.from === null ? cut() : null, n > 1 ? make("h3", {}, "Nearest on this map") : null,
      make("ul", { class: "links" }, ...neighbours(point).map(([distance, i]) => link(i, distance))),
    );
  }

  /* ---- straight cuts ---- */
  const reversible = () => Boolean(data.lattice || data.cuts);
  const sources = {};
  function frames(kind) {
    if (sources[kind]) return sources[kind];
    const given = data[kind];
    if (given.rows) {
      const rows = floats(given.rows), k = given.features;
      let low = Infinity, high = -Infinity;
      for (const value of rows) { low = Math.min(low, value); high = Math.max(high, value); }
      return (sources[kind] = { size: k, low, high, frame: (place) => rows.subarray(place * k, (place + 1) * k) });
    }
    const { columns: across, width: w, height: h, count } = given.pictures, sheet = given.image;
    const sketch = make("canvas", { width: sheet.width, height: sheet.height }), inside = sketch.getContext("2d", { willReadFrequently: true });
    inside.drawImage(sheet, 0, 0);
    const all = inside.getImageData(0, 0, sheet.width, sheet.height).data;
    return (sources[kind] = { size: w * h * 4, width: w, height: h, count, frame: (place) => {
      const left = (place % across) * w, top = Math.floor(place / across) * h, found = new Uint8ClampedArray(w * h * 4);
      for (let row = 0; row < h; row++) found.set(all.subarray(((top + row) * sheet.width + left) * 4, ((top + row) * sheet.width + left + w) * 4), row * w * 4);
      return found;
    } });
  }
  function mixed(source, parts) {
    const found = new Float32Array(source.size);
    for (const [place, weight] of parts) {
      if (!weight) continue;
      const frame = source.frame(place);
      for (let k = 0; k < found.length; k++) found[k] += weight * frame[k];
    }
    return found;
  }
  /* Which rows the model made exactly, if this cut was asked for when the page was written. */
  function exact(from, to) {
    if (!data.cuts) return null;
    const place = data.cuts.pairs.findIndex(([a, b]) => (a === from && b === to) || (a === to && b === from));
    return place < 0 ? null : { first: place * data.cuts.steps, turned: data.cuts.pairs[place][0] !== from };
  }
  function along(from, to, t) {
    const found = exact(from, to);
    if (found) {
      const place = (found.turned ? 1 - t : t) * (data.cuts.steps - 1), low = Math.min(data.cuts.steps - 2, Math.floor(place));
      return mixed(frames("cuts"), [[found.first + low, 1 - place + low], [found.first + low + 1, place - low]]);
    }
    const { size, corners: [low, high] } = data.lattice, a = mainImage(from), b = mainImage(to);
    const cells = [0, 1].map((axis) => {
      const value = (1 - t) * original(a, axis) + t * original(b, axis), place = ((value - low[axis]) / (high[axis] - low[axis])) * (size - 1);
      const cell = Math.max(0, Math.min(size - 2, Math.floor(place)));
      return [cell, place - cell];
    });
    const [[column, x], [row, y]] = cells, at = (dy, dx) => (row + dy) * size + column + dx;
    return mixed(frames("lattice"), [[at(0, 0), (1 - x) * (1 - y)], [at(0, 1), x * (1 - y)], [at(1, 0), (1 - x) * y], [at(1, 1), x * y]]);
  }
  function drawRow(element, source, values) {
    const inside = element.getContext("2d");
    if (source.width) { inside.putImageData(new ImageData(Uint8ClampedArray.from(values, Math.round), source.width, source.height), 0, 0); return; }
    const w = element.width, h = element.height, y = (value) => h - 4 - ((value - source.low) / (source.high - source.low || 1)) * (h - 8);
    inside.clearRect(0, 0, w, h);
    inside.beginPath();
    values.forEach((value, k) => inside.lineTo(values.length > 1 ? 3 + (k / (values.length - 1)) * (w - 6) : w / 2, y(value)));
    inside.lineWidth = w > 150 ? 2 : 1.5;
    inside.strokeStyle = css("--bar");
    inside.stroke();
  }
  function cut() {
    if (!reversible()) return null;
    if (state.from === null) return make("p", { class: "note" }, data.lattice ? "Choose a second point to see what the model makes of the straight way to it." : "Straight ways from one point to another are under “About the map”.");
    const from = state.from, to = state.point, is_exact = exact(from, to) !== null;
    const heading = make("h3", {}, "From " + map.short(name(from), 40) + " to " + map.short(name(to), 40));
    if (!is_exact && !data.lattice) return make("div", {}, heading, make("p", { class: "note" }, "This cut was not made when the page was written."));
    if (points.axes > 1 && !is_exact && $("#first") && !($("#first").value === "0" && $("#second").value === "1")) return make("div", {}, heading, make("p", { class: "note" }, "Cuts are known on the map of coordinates 1 and 2."));
    const source = frames(is_exact ? "cuts" : "lattice"), steps = 9;
    const fresh = (large) => make("canvas", { class: "picture", width: source.width || (large ? 360 : 90), height: source.height || (large ? 160 : 60) });
    const strip = Array.from({ length: steps }, (_, step) => { const element = fresh(false); drawRow(element, source, along(from, to, step / (steps - 1))); return element; });
    const large = fresh(true);
    large.classList.add("large");
    const slider = make("input", { type: "range", min: 0, max: 100, value: 50, "aria-label": "Place on the way", oninput: () => moved() });
    const moved = () => { const t = Number(slider.value) / 100; map.along = t; drawRow(large, source, along(from, to, t)); root.dataset.along = String(t); map.draw(); };
    moved();
    root.dataset.cut = is_exact ? "exact" : "lattice";
    const how = is_exact ? "Made by the model at nine places on the straight way, blended between them."
      : "Blended from " + data.lattice.size + " × " + data.lattice.size + (source.width ? " pictures" : " rows") + " that the model made over the map" + (points.of > 2 ? " (coordinates 1 and 2; the others are those of the nearest points)" : "") + ": between them it is an approximation.";
    return make("div", { class: "cut" }, heading, make("div", { class: "strip", role: "img", "aria-label": "nine steps on the straight way" }, ...strip), slider, large, make("p", { class: "note" }, how));
  }
  function cutList() {
    const box = $("#cuts");
    if (!box || !data.cuts) return;
    box.replaceChildren(...data.cuts.pairs.map(([from, point]) => make("li", {}, make("a", { href: "#from=" + from + "&point=" + point }, make("span", {}, "→"), make("span", {}, name(from) + " – " + name(point))))));
  }

  /* ---- search ---- */
  const folded = (text) => text.normalize("NFKD").replace(/[\u0300-\u036f]/g, "").toLowerCase();
  let index = null, hits = [];
  function entries() {
    if (index) return index;
    const named = columns.filter((column) => column.kind === "classes");
    return (index = Array.from({ length: n }, (_, point) => folded([data.labels ? data.labels[point] : "", data.titles ? data.titles[point] : "", ...named.map((column) => (column.codes[point] < column.classes.length ? column.names[column.codes[point]] : ""))].join("\n"))));
  }
  let searched = null;
  function search() {
    if (searched === state.find) return;
    searched = state.find;
    const wanted = folded(state.find).split(/\s+/).filter(Boolean), searching = wanted.length > 0;
    hits = [];
    if (searching) entries().forEach((text, point) => { if (wanted.every((part) => text.includes(part) || (!data.labels && part === String(point)))) hits.push(point); });
    map.faint.fill(searching ? 1 : 0);
    for (const point of hits) for (let i = point * images; i < (point + 1) * images; i++) map.faint[i] = 0;
    map.hits = hits;
    root.dataset.hits = searching ? String(hits.length) : "";
    const close = () => { $("#found").hidden = true; };
    $("#found").replaceChildren(make("p", { role: "status" }, hits.length === 1 ? "1 point" : hits.length.toLocaleString("en") + " points"),
      ...(hits.length > 1 && hits.length < n ? [make("a", { href: "#", onclick: (event) => { event.preventDefault(); close(); map.fit(new Set(hits)); canvas.focus(); } }, make("span", {}, "Show all of them"))] : []),
      ...hits.slice(0, 12).map((point) => make("a", { href: address({ point, from: null }), onclick: (event) => { event.preventDefault(); close(); choose(point); } }, make("span", {}, map.short(name(point), 60)), columns[state.color] ? make("small", {}, map.short(told(columns[state.color], point), 24)) : null)));
    if (!searching) $("#found").hidden = true;
    map.changed();
  }
  function searchBox() {
    const input = $("#find"), box = $("#found");
    let later = 0;
    const look = () => { clearTimeout(later); go({ find: input.value }, true); box.hidden = !input.value.trim(); };
    input.addEventListener("input", () => { clearTimeout(later); later = setTimeout(look, n > 5000 ? 120 : 0); });
    input.addEventListener("focus", () => { if (input.value.trim()) box.hidden = false; });
    input.addEventListener("keydown", (event) => {
      if (event.key === "Enter") { look(); if (hits.length) { box.hidden = true; choose(hits[0]); } }
      else if (event.key === "ArrowDown") { const first = $("#found a"); if (first) { event.preventDefault(); first.focus(); } }
      else if (event.key === "Escape") { event.stopPropagation(); input.value = ""; look(); input.blur(); }
    });
    box.addEventListener("keydown", (event) => {
      const all = $$("#found a"), at = all.indexOf(document.activeElement);
      if (event.key === "ArrowDown" && all[at + 1]) all[at + 1].focus();
      else if (event.key === "ArrowUp") (all[at - 1] || input).focus();
      else if (event.key === "Escape") { event.stopPropagation(); input.focus(); box.hidden = true; }
      else return;
      event.preventDefault();
    });
    addEventListener("pointerdown", (event) => { if (!event.target.closest(".search")) box.hidden = true; });
  }

  /* ---- all together ---- */
  function begin() {
    const select = $("#color");
    if (select) select.addEventListener("change", () => go({ color: Number(select.value) }, true));
    pointer();
    keys();
    buttons();
    searchBox();
    cutList();
    addEventListener("keydown", (event) => {
      const typing = event.target.matches && event.target.matches("input:not([type=range]), textarea, select");
      if (event.key === "/" && !typing) { event.preventDefault(); $("#find").focus(); }
      else if (event.key === "Escape" && state.point !== null) go({ point: null, from: null });
    });
    $("h1 a").addEventListener("click", (event) => { event.preventDefault(); go({ point: null, from: null, find: "" }); map.fit(); });
    addEventListener("hashchange", readAddress);
    new ResizeObserver(map.resize).observe(canvas);
    dark.addEventListener("change", () => { recolor(); legend(); show(); });
    map.setAxes(0, Math.min(1, points.axes - 1));
    readAddress();
    root.classList.add("js");
    root.dataset.ready = "true";
  }
  const loads = [];
  const load = (image, address) => loads.push(new Promise((done) => { image.onload = image.onerror = done; image.src = address; }));
  if (data.pictures) load(picture, data.pictures.sheet);
  for (const kind of ["lattice", "cuts"]) if (data[kind] && data[kind].pictures) { data[kind].image = new Image(); load(data[kind].image, data[kind].pictures.sheet); }
  if (loads.length) Promise.all(loads).then(begin); else begin();
})();
