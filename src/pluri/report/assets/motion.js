(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const root = document.documentElement;
  const $ = (selector, within = document) => within.querySelector(selector);
  const dark = matchMedia("(prefers-color-scheme:dark)"), calm = matchMedia("(prefers-reduced-motion:reduce)");

  /* Text from the data only ever becomes text. */
  function make(tag, attributes = {}, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (value === false || value === null || value === undefined) continue;
      if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
      else if (name.startsWith("--") || name === "left" || name === "width") element.style.setProperty(name, value);
      else element.setAttribute(name, value === true ? "" : value);
    }
    element.append(...children.filter((child) => child !== null && child !== undefined));
    return element;
  }
  const bytes = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));

  /* ---- what is known ---- */
  const names = data.regimes ? data.regimes.names : [];
  const motions = data.motions.map((motion, number) => {
    const codes = data.regimes && data.regimes.codes[number] ? bytes(data.regimes.codes[number]) : null, path = data.map && data.map.paths[number];
    return { ...motion, number, places: new Int16Array(bytes(motion.places).buffer), at: path ? new Float32Array(bytes(path).buffer) : null,
      gaps: data.gaps[number], handOvers: data.handOvers[number], codes, runs: codes ? runsOf(codes) : [] };
  });
  function runsOf(codes) {
    const found = [];
    for (let start = 0, k = 1; k <= codes.length; k++) if (k === codes.length || codes[k] !== codes[start]) { found.push([start, k, codes[start]]); start = k; }
    return found;
  }
  /* One clock for all: it ticks as often as the fastest motion has frames. */
  const tick = motions.reduce((least, motion) => Math.min(least, motion.time), Infinity);
  const frameOf = (motion, now) => Math.min(motion.frames - 1, Math.floor((now * tick) / motion.time + 1e-6));
  const tickOf = (motion, frame) => Math.ceil((frame * motion.time) / tick - 1e-6);
  const last = () => state.shown.reduce((most, motion) => Math.max(most, tickOf(motion, motion.frames - 1)), 0);
  const gapAt = (motion, frame) => motion.gaps.find(([start, stop]) => frame >= start && frame < stop);
  const overAt = (motion, frame) => motion.handOvers.find(([at]) => frame >= at && (frame - at) * motion.time < 0.8);
  const regimeName = (code) => (/^-?\d+$/.test(names[code]) ? "regime " : "") + names[code];
  const regimeAt = (motion, frame) => (motion.codes && motion.codes[frame] !== 255 ? motion.codes[frame] : null);

  /* ---- colours ---- */
  let kept = {};
  const color = (name) => kept[name] || (kept[name] = getComputedStyle(root).getPropertyValue(name).trim());
  const palette = () => (dark.matches ? data.colors.dark : data.colors.light);
  /* From the two ends: motions and regimes share a colour only if there are many. */
  const motionColor = (number) => palette()[palette().length - 1 - (number % palette().length)];
  const regimeColor = (code) => (code === 255 ? color("--line") : palette()[code % palette().length]);

  /* ---- state, and the address that says it ---- */
  const state = { now: 0, exact: 0, playing: false, shown: motions.slice(0, data.shown) };
  const first = () => motions.slice(0, data.shown);
  function address() {
    const parts = state.now ? ["frame=" + state.now] : [], usual = first();
    if (state.shown.length !== usual.length || state.shown.some((motion, k) => motion !== usual[k])) parts.push("show=" + state.shown.map((motion) => motion.number).join(","));
    return "#" + parts.join("&");
  }
  const keep = () => { if ((location.hash || "#") !== address()) history.replaceState(null, "", address()); };
  function readAddress() {
    const given = new Map(location.hash.slice(1).split("&").map((part) => part.split("=", 2)));
    const asked = (given.get("show") || "").split(",").filter((word) => /^\d+$/.test(word)).map(Number).filter((number) => number < motions.length);
    state.shown = asked.length ? [...new Set(asked)].sort((a, b) => a - b).map((number) => motions[number]) : first();
    const frame = given.get("frame");
    state.now = state.exact = /^\d+$/.test(frame || "") ? Math.min(last(), Number(frame)) : 0;
    layOut();
    return /^\d+$/.test(frame || "");
  }

  /* ---- the two views ---- */
  const stage = $("#figure"), mapCanvas = $("#map"), tip = $("#tip");
  const look = { color, motionColor, regimeColor, painted: () => { root.dataset.drawn = String(figures.drawn); } };
  const figures = figureView(stage, look);
  const paths = mapCanvas ? pathView(mapCanvas, motions, look) : null;
  motions.forEach(figures.prepare);

  function show() {
    const frames = state.shown.map((motion) => frameOf(motion, state.now));
    for (const view of paths ? [figures, paths] : [figures]) { view.shown = state.shown; view.frames = frames; view.draw(); }
    root.dataset.frame = String(state.now);
    $("#scrub").value = String(state.now);
    $("#now").textContent = "frame " + state.now + " of " + last() + " · " + (state.now * tick).toFixed(2) + " s";
    $("#scrub").setAttribute("aria-valuetext", [$("#now").textContent, ...state.shown.map((motion, k) => motion.name + ": " + status(motion, frames[k]).join(", "))].join("; "));
    const share = last() ? (100 * state.now) / last() : 0;
    for (const at of document.querySelectorAll(".at")) at.style.left = share + "%";
    state.shown.forEach((motion, k) => caption(motion, frames[k], k));
  }
  function status(motion, frame) {
    const found = [], gap = gapAt(motion, frame), over = overAt(motion, frame), regime = regimeAt(motion, frame);
    if (gap) found.push("gap, imputed");
    if (over) found.push(over[1] || "hand-over");
    if (regime !== null) found.push(regimeName(regime));
    if (frame === motion.frames - 1 && tickOf(motion, frame) < state.now) found.push("ended");
    return found;
  }
  function caption(motion, frame, column) {
    const box = $("#captions").children[column], told = status(motion, frame), regime = regimeAt(motion, frame), key = told.join("|");
    $(".count", box).textContent = "frame " + frame + " of " + (motion.frames - 1);
    if (box.dataset.told === key) return;
    box.dataset.told = key;
    $(".badges", box).replaceChildren(...told.map((text) => (regime !== null && text === regimeName(regime)
      ? make("span", { class: "badge regime" }, make("i", { class: "dot square", "--c": regimeColor(regime) }), text)
      : make("span", { class: "badge" }, text))));
  }
  /* What depends on which motions are shown, and not on the frame. */
  function layOut() {
    const end = Math.max(1, last());
    state.now = Math.min(state.now, last());
    root.dataset.shown = state.shown.map((motion) => motion.number).join(",");
    $("#scrub").max = String(last());
    $("#captions").replaceChildren(...state.shown.map((motion) => make("div", { class: "caption" },
      make("b", {}, make("i", { class: "dot", "--c": motionColor(motion.number) }), motion.name), make("span", { class: "count" }), make("div", { class: "badges" }))));
    const place = (motion, frame) => (100 * tickOf(motion, frame)) / end + "%";
    const span = (motion, start, stop) => ({ left: place(motion, start), width: (100 * (tickOf(motion, Math.min(stop, motion.frames - 1)) - tickOf(motion, start))) / end + "%" });
    $("#strips").replaceChildren(...state.shown.map((motion) => make("div", { class: "row" }, make("span", { title: motion.name }, motion.name),
      make("div", { class: "strip" },
        make("i", { class: "whole", "--c": motionColor(motion.number), ...span(motion, 0, motion.frames - 1) }),
        ...motion.runs.map(([start, stop, code]) => make("i", { class: "regime", "--c": regimeColor(code), title: code === 255 ? null : regimeName(code), ...span(motion, start, stop) })),
        ...motion.gaps.map(([start, stop]) => make("i", { class: "gap", title: "gap, imputed: frames " + start + " to " + (stop - 1), ...span(motion, start, stop) })),
        ...motion.handOvers.map(([frame, text]) => make("i", { class: "over", title: text || "hand-over", left: place(motion, frame) })),
        make("i", { class: "at" })))));
    for (const strip of document.querySelectorAll(".strip")) scrubbing(strip);
    $("#motions").replaceChildren(...motions.map((motion) => make("li", {}, make("button", { type: "button", "data-motion": motion.number, title: motion.name,
      "aria-pressed": String(state.shown.includes(motion)), onclick: () => toggle(motion) },
    make("i", { class: "dot", "--c": motionColor(motion.number) }), make("span", {}, motion.name), make("small", {}, (motion.frames * motion.time).toFixed(1) + " s")))));
    lists();
    show();
  }
  function toggle(motion) {
    const others = state.shown.filter((other) => other !== motion);
    if (others.length === state.shown.length) others.push(motion);
    if (!others.length) return;
    state.shown = others.sort((a, b) => a.number - b.number);
    layOut();
    keep();
    $('[data-motion="' + motion.number + '"]').focus();
  }
  const marks = () => state.shown.flatMap((motion) => [
    ...motion.gaps.map(([start, stop]) => ({ motion, frame: start, text: "gap of " + (stop - start) + " frame" + (stop - start > 1 ? "s" : ""), kind: "gap" })),
    ...motion.handOvers.map(([frame, text]) => ({ motion, frame, text: text || "hand-over", kind: "hand-over" }))])
    .map((mark) => ({ ...mark, now: tickOf(mark.motion, mark.frame) })).sort((a, b) => a.now - b.now);
  function lists() {
    const events = $("#events"), regimes = $("#regimes");
    if (events) events.replaceChildren(...marks().map((mark) => make("li", {}, make("a", { href: "#frame=" + mark.now, onclick: (event) => { event.preventDefault(); pause(); go(mark.now); } },
      make("i", { class: "dot", "--c": motionColor(mark.motion.number) }), make("span", { title: mark.motion.name }, mark.text + (state.shown.length > 1 ? ", " + mark.motion.name : "")), make("small", {}, "frame " + mark.frame)))));
    if (!regimes) return;
    const count = new Array(names.length).fill(0);
    let all = 0;
    for (const motion of state.shown) if (motion.codes) for (const code of motion.codes) if (code !== 255) { count[code]++; all++; }
    regimes.replaceChildren(...names.map((_, code) => (count[code] ? make("li", {}, make("i", { class: "dot square", "--c": regimeColor(code) }), make("span", {}, regimeName(code)), make("small", {}, Math.round((100 * count[code]) / all) + "%")) : null)).filter(Boolean));
  }

  /* ---- the clock ---- */
  function go(now, remember = true) {
    state.now = state.exact = Math.max(0, Math.min(last(), Math.round(now)));
    show();
    if (remember) keep();
  }
  let before = 0;
  function step(time) {
    if (!state.playing) return;
    const passed = Math.min(0.25, Math.max(0, (time - before) / 1000));
    before = time;
    state.exact += (passed * Number($("#speed").value)) / tick;
    if (state.exact >= last() + 1) {
      if (!$("#repeat").checked) { state.exact = last(); state.now = last(); show(); pause(); return; }
      state.exact = 0;
    }
    const now = Math.min(last(), Math.floor(state.exact));
    if (now !== state.now) { state.now = now; show(); }
    requestAnimationFrame(() => step(performance.now()));
  }
  function play() {
    if (state.playing || !last()) return;
    if (state.now >= last()) state.exact = state.now = 0;
    state.playing = true;
    before = performance.now();
    button();
    requestAnimationFrame(() => step(performance.now()));
  }
  function pause() { if (state.playing) { state.playing = false; button(); keep(); } }
  function button() {
    const element = $("#play");
    element.textContent = state.playing ? "❚❚" : "▶";
    element.setAttribute("aria-label", state.playing ? "Pause" : "Play");
    root.dataset.playing = String(state.playing);
  }

  /* ---- pointers and keys ---- */
  const within = (element, event) => { const frame = element.getBoundingClientRect(); return [event.clientX - frame.left, event.clientY - frame.top, frame]; };
  const hold = (element, event) => { try { element.setPointerCapture(event.pointerId); } catch { /* a program's own event */ } };
  function scrubbing(strip) {
    const to = (event) => { const [x, , frame] = within(strip, event); go((x / Math.max(1, frame.width)) * last(), false); };
    strip.addEventListener("pointerdown", (event) => { if (event.button === 0) { hold(strip, event); pause(); strip.dataset.held = "1"; to(event); } });
    strip.addEventListener("pointermove", (event) => { if (strip.dataset.held) to(event); });
    for (const kind of ["pointerup", "pointercancel"]) strip.addEventListener(kind, () => { if (strip.dataset.held) { delete strip.dataset.held; keep(); } });
  }
  function turning() {
    const held = new Map();
    let apart = 0;
    const distance = () => { const [a, b] = [...held.values()]; return Math.hypot(a[0] - b[0], a[1] - b[1]); };
    stage.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return;
      hold(stage, event);
      held.set(event.pointerId, within(stage, event));
      stage.classList.add("held");
      if (held.size === 2) apart = distance();
    });
    stage.addEventListener("pointermove", (event) => {
      const old = held.get(event.pointerId);
      if (!old) return;
      const at = within(stage, event);
      held.set(event.pointerId, at);
      if (held.size === 1) figures.turn(at[0] - old[0], at[1] - old[1]);
      else if (held.size === 2) { const now = distance(); if (apart > 0 && now > 0) figures.closer(now / apart); apart = now; }
      root.dataset.yaw = figures.yaw.toFixed(3);
      root.dataset.zoom = figures.zoom.toFixed(3);
    });
    for (const kind of ["pointerup", "pointercancel"]) stage.addEventListener(kind, (event) => { held.delete(event.pointerId); if (!held.size) stage.classList.remove("held"); });
    stage.addEventListener("wheel", (event) => { event.preventDefault(); figures.closer(Math.exp(-Math.max(-240, Math.min(240, event.deltaY * (event.deltaMode === 1 ? 16 : 1))) * 0.0018)); root.dataset.zoom = figures.zoom.toFixed(3); }, { passive: false });
    stage.addEventListener("keydown", (event) => {
      if (event.altKey || event.ctrlKey || event.metaKey) return;
      const way = { ArrowLeft: [-12, 0], ArrowRight: [12, 0], ArrowUp: [0, -12], ArrowDown: [0, 12] }[event.key];
      if (way) figures.turn(...way);
      else if (event.key === "+" || event.key === "=") figures.closer(1.2);
      else if (event.key === "-") figures.closer(1 / 1.2);
      else if (event.key === "0") figures.reset();
      else return;
      root.dataset.yaw = figures.yaw.toFixed(3);
      root.dataset.zoom = figures.zoom.toFixed(3);
      event.preventDefault();
      event.stopPropagation();
    });
  }
  function pointing() {
    if (!paths) return;
    let held = false;
    const find = (event, limit) => { const [x, y] = within(mapCanvas, event); return paths.nearest(x, y, limit, state.shown.map((motion) => frameOf(motion, state.now))); };
    const jump = (event) => { const found = find(event, 40); if (found) go(tickOf(found.motion, found.frame), false); };
    mapCanvas.addEventListener("pointerdown", (event) => { if (event.button === 0) { hold(mapCanvas, event); held = true; pause(); jump(event); } });
    mapCanvas.addEventListener("pointermove", (event) => {
      if (held) { jump(event); return; }
      const found = event.pointerType === "mouse" ? find(event, 16) : null;
      if ((found && found.frame) !== (paths.hover && paths.hover.frame) || Boolean(found) !== Boolean(paths.hover)) { paths.hover = found; paths.draw(); }
      tip.hidden = !found;
      if (found) tell(found);
    });
    for (const kind of ["pointerup", "pointercancel"]) mapCanvas.addEventListener(kind, () => { if (held) { held = false; keep(); } });
    mapCanvas.addEventListener("pointerleave", () => { tip.hidden = true; paths.hover = null; paths.draw(); });
  }
  function tell({ motion, frame }) {
    const [x, y] = paths.screen(motion, frame), frameBox = mapCanvas.parentElement;
    tip.replaceChildren(make("b", {}, motion.name), make("span", {}, "frame " + frame + " · " + (frame * motion.time).toFixed(2) + " s"),
      ...status(motion, frame).filter((text) => text !== "ended").map((text) => make("span", {}, text)));
    tip.style.left = Math.max(4, x + 16 + tip.offsetWidth > frameBox.clientWidth ? x - 16 - tip.offsetWidth : x + 16) + "px";
    tip.style.top = Math.max(4, Math.min(y - 10, frameBox.clientHeight - tip.offsetHeight - 4)) + "px";
  }
  function keys(event) {
    if (event.altKey || event.ctrlKey || event.metaKey || event.target.matches("select")) return;
    const by = event.shiftKey ? 10 : 1, pressed = event.target.matches("button, a, input[type=checkbox]"), sliding = event.target.matches("input[type=range]");
    const all = marks(), after = all.find((mark) => mark.now > state.now), earlier = all.filter((mark) => mark.now < state.now).pop();
    if (event.key === " " && !pressed) { if (state.playing) pause(); else play(); }
    else if (event.key === "ArrowRight" && !sliding) { pause(); go(state.now + by); }
    else if (event.key === "ArrowLeft" && !sliding) { pause(); go(state.now - by); }
    else if (event.key === "Home") { pause(); go(0); }
    else if (event.key === "End") { pause(); go(last()); }
    else if (event.key.toLowerCase() === "n" && after) { pause(); go(after.now); }
    else if (event.key.toLowerCase() === "p" && earlier) { pause(); go(earlier.now); }
    else return;
    event.preventDefault();
  }

  /* ---- all together ---- */
  function begin() {
    /* Seen half from the side: the way that the first motion takes leads to the right. */
    const path = motions[0].path, dx = path[path.length - 1][0] - path[0][0], dz = path[path.length - 1][1] - path[0][1];
    if (Math.hypot(dx, dz) > 0.5 * motions[0].size) figures.setStart(Math.atan2(dx, dz) - 1.0);
    turning();
    pointing();
    $("#play").addEventListener("click", () => { if (state.playing) pause(); else play(); });
    $("#back").addEventListener("click", () => { pause(); go(state.now - 1); });
    $("#on").addEventListener("click", () => { pause(); go(state.now + 1); });
    $("#scrub").addEventListener("input", () => { pause(); go(Number($("#scrub").value)); });
    $("#follow").addEventListener("change", () => { figures.follow = $("#follow").checked; figures.draw(); });
    const colors = $("#color");
    if (paths) paths.byRegime = Boolean(colors && colors.value === "regime");
    if (colors) colors.addEventListener("change", () => { paths.byRegime = colors.value === "regime"; paths.draw(); });
    addEventListener("keydown", keys);
    $("h1 a").addEventListener("click", (event) => { event.preventDefault(); pause(); figures.reset(); history.replaceState(null, "", "#"); readAddress(); });
    addEventListener("hashchange", () => { pause(); readAddress(); });
    dark.addEventListener("change", () => { kept = {}; layOut(); });
    for (const view of paths ? [[stage, figures], [mapCanvas, paths]] : [[stage, figures]]) new ResizeObserver(() => view[1].paint()).observe(view[0]);
    button();
    const asked = readAddress();
    if (!asked && !calm.matches) play();
    root.classList.add("js");
    root.dataset.ready = "true";
  }
  begin();
})();
