"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const $ = (id) => document.getElementById(id);
  const token = new URLSearchParams(location.search).get("token") || "";
  const choices = [...document.querySelectorAll(".choice")];
  const space = "http://www.w3.org/2000/svg";
  let row = null, waiting = false, drawn = "", sent = 0;

  // All text is set as text: nothing of an item is ever read as markup.
  const make = (name, text, parent, kind) => {
    const element = document.createElement(name);
    if (text !== undefined) element.textContent = text;
    if (kind) element.className = kind;
    if (parent) parent.append(element);
    return element;
  };

  const picture = (item) => {
    const canvas = make("canvas");
    canvas.width = item.width; canvas.height = item.height;
    canvas.setAttribute("role", "img");
    canvas.setAttribute("aria-label", `Picture of ${item.width} by ${item.height} pixels`);
    const context = canvas.getContext("2d"), image = context.createImageData(item.width, item.height);
    item.pixels.forEach((value, place) => image.data.set([value, value, value, 255], 4 * place));
    context.putImageData(image, 0, 0);
    return canvas;
  };

  const show = (item, n) => {
    const box = $("item");
    box.replaceChildren();
    row = item ? item.row : null;
    box.dataset.row = row === null ? "" : row;
    if (!item) { make("p", `Nothing is left: all ${n} items are labelled or skipped.`, box, "done"); return; }
    if (item.text !== undefined) make("pre", item.text || "(an empty text)", box);
    if (item.pixels) box.append(picture(item));
    if (item.cells && item.cells.length) {
      const body = make("tbody", undefined, make("table", undefined, box));
      for (const [name, value] of item.cells) {
        const line = make("tr", undefined, body);
        make("th", name, line).scope = "row";
        make("td", value || "–", line);
      }
    }
    box.scrollTop = 0;
  };

  const draw = (curve) => {
    if (drawn === JSON.stringify(curve)) return;
    drawn = JSON.stringify(curve);
    const svg = $("curve"), left = 40, right = 290, top = 10, bottom = 146;
    svg.replaceChildren();
    const add = (name, attributes, text) => {
      const element = document.createElementNS(space, name);
      for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
      if (text !== undefined) element.textContent = text;
      svg.append(element);
    };
    const low = Math.max(0, Math.floor(10 * Math.min(0.9, ...curve.map(([, mean, error]) => mean - error))) / 10);
    const most = Math.max(10, ...curve.map(([n]) => n));
    const x = (n) => left + (right - left) * n / most;
    const y = (value) => bottom - (bottom - top) * (Math.min(1, Math.max(low, value)) - low) / (1 - low);
    for (const value of [low, (1 + low) / 2, 1]) {
      add("line", {class: "grid", x1: left, x2: right, y1: y(value), y2: y(value)});
      add("text", {x: left - 5, y: y(value) + 3.5, "text-anchor": "end"}, `${Math.round(100 * value)}%`);
    }
    add("text", {x: left, y: 162}, "0");
    add("text", {x: right, y: 162, "text-anchor": "end"}, `${most} labels`);
    if (!curve.length) { add("text", {x: 160, y: 80, "text-anchor": "middle"}, "after two labels of each class"); return; }
    const line = (points) => points.map(([a, b]) => `${a.toFixed(1)},${b.toFixed(1)}`).join(" ");
    const upper = curve.map(([n, mean, error]) => [x(n), y(mean + error)]);
    const lower = curve.map(([n, mean, error]) => [x(n), y(mean - error)]).reverse();
    add("polygon", {class: "band", points: line([...upper, ...lower])});
    add("polyline", {class: "line", points: line(curve.map(([n, mean]) => [x(n), y(mean)]))});
    const [n, mean] = curve[curve.length - 1];
    add("circle", {cx: x(n), cy: y(mean), r: 3.2});
    svg.setAttribute("aria-label", `Accuracy against number of labels: ${Math.round(100 * mean)} % with ${n}`);
  };

  const tell = (state) => {
    if (!state.item || state.item.row !== row || !$("item").firstChild) {
      show(state.item, state.n_items);
      // The mark of the last choice goes soon: it is no suggestion for the next.
      setTimeout(() => choices.forEach((button) => button.classList.remove("struck")), 350);
    }
    const skipped = state.n_skipped ? `, ${state.n_skipped} skipped` : "";
    $("counts").textContent = `${state.n_labels} of ${state.n_items} labelled${skipped}; the model has learned from ${state.n_fitted}`;
    choices.forEach((button, place) => { button.querySelector(".count").textContent = state.counts[place]; });
    const said = state.last && (state.last.label === null ? "skipped" : state.last.label);
    $("last").textContent = state.last ? `previous: ${said}` : "";
    $("undo").disabled = !state.last;
    for (const button of [...choices, $("skip")]) button.disabled = row === null;
    draw(state.curve);
    message(state.trouble);
    document.documentElement.dataset.labels = state.n_labels;
    document.documentElement.dataset.fitted = state.n_fitted;
  };

  const message = (text) => { $("message").textContent = text; $("message").hidden = !text; };

  const ask = async (path, content) => {
    const options = content === undefined ? {} : {
      method: "POST", headers: {"Content-Type": "application/json"}, body: JSON.stringify(content),
    };
    const answer = await fetch(`${path}?token=${encodeURIComponent(token)}`, options);
    const state = await answer.json();
    if (!answer.ok && answer.status !== 409) throw new Error(state.error);
    if (answer.status === 409) state.trouble = "this item was answered in another window; here is the next";
    return state;
  };

  // One answer at a time: a key belongs to the item that is seen, never to the one that comes after it.
  const send = async (path, content) => {
    if (waiting) return;
    waiting = true;
    sent += 1;
    $("item").classList.add("waiting");
    try {
      tell(await ask(path, content));
    } catch (error) {
      const gone = error instanceof TypeError;
      message(gone ? "pluri label has ended, and this answer was not kept. Every one before it is: start the command again, "
        + "and open the address that it prints." : `This answer was not kept: ${error.message}.`);
    }
    $("item").classList.remove("waiting");
    waiting = false;
    document.documentElement.dataset.ready = "true";
  };

  const choose = (place) => {
    if (row === null || waiting) return;
    choices.forEach((button, other) => button.classList.toggle("struck", other === place));
    send("/label", {row, label: data.classes[place]});
  };
  const skip = () => { if (row !== null) send("/skip", {row}); };
  const undo = () => { if (!$("undo").disabled) send("/undo", {}); };

  choices.forEach((button, place) => button.addEventListener("click", () => { choose(place); button.blur(); }));
  $("skip").addEventListener("click", skip);
  $("undo").addEventListener("click", undo);
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
    const key = event.key.toLowerCase(), place = data.keys.indexOf(key);
    if (place >= 0) choose(place);
    else if (key === "s") skip();
    else if (key === "u" || key === "backspace") undo();
    else return;
    event.preventDefault();
  });

  // The model learns meanwhile: its curve and counts are looked at now and then, the item stays.
  const look = async () => {
    if (!waiting && !document.hidden) {
      const before = sent;
      try {
        const state = await ask("/state");
        if (before === sent) tell(state);  // else it is older than what is seen
      } catch (error) { /* the next answer tells */ }
    }
    setTimeout(look, 2000);
  };
  send("/state");
  setTimeout(look, 1500);
})();
