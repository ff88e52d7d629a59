// The page about neurons: live, beside a simulation that runs; or a film of one that has run.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const $ = (id) => document.getElementById(id);
  const root = document.documentElement;
  const token = new URLSearchParams(location.search).get("token") || "";
  const live = data.live;
  // Samples that the page keeps of each trace: older ones leave it.
  const KEPT = 60000;
  // Spikes within so many ms count for the rate.
  const RECENT = 400;
  let layout = data.layout, cursor = 0, version = -1, epoch = -1, dirty = true, asked = null;
  let now = 0, running = false, wanted = null, drawings = [], films = {};

  const make = (name, text, parent, kind) => {
    const element = document.createElement(name);
    if (text !== undefined) element.textContent = text;
    if (kind) element.className = kind;
    if (parent) parent.append(element);
    return element;
  };

  // ---------------------------------------------------------------------------------------------------------------
  // Films: what was seen so far of each graph, raster and cell.
  const empty = () => {
    films = {};
    for (const graph of layout.graphs) films[graph.path] = {t: [], v: graph.traces.map(() => []), spikes: graph.traces.map(() => [])};
    for (const network of layout.networks) films[network.path] = {t: [], u: []};
    for (const cell of layout.cells) films[cell.path] = {t: [], frames: []};
  };

  const append = (piece) => {
    for (const graph of layout.graphs) {
      const film = films[graph.path], more = piece.graphs[graph.path];
      if (!more) continue;
      more.v.forEach((values, place) => {
        const old = film.v[place];
        if (!old) return;
        for (let i = 0; i < values.length; i += 1) {
          const before = i ? values[i - 1] : old[old.length - 1];
          if (before < 0 && values[i] >= 0) film.spikes[place].push(more.t[i]);
        }
        for (const value of values) old.push(value);
      });
      for (const time of more.t) film.t.push(time);
      if (live && film.t.length > 2 * KEPT) {
        film.t = film.t.slice(-KEPT); film.v = film.v.map((values) => values.slice(-KEPT));
        film.spikes = film.spikes.map((times) => times.slice(-1000));
      }
    }
    for (const network of layout.networks) {
      const film = films[network.path], more = piece.networks[network.path];
      if (!more) continue;
      for (const time of more.t) film.t.push(time);
      for (const unit of more.u) film.u.push(unit);
      if (live && film.t.length > 4 * KEPT) { film.t = film.t.slice(-2 * KEPT); film.u = film.u.slice(-2 * KEPT); }
    }
    for (const cell of layout.cells) {
      const film = films[cell.path], more = piece.cells[cell.path];
      if (!more || !more.frames.length) continue;
      if (live) { film.t = more.t.slice(-1); film.frames = more.frames.slice(-1); }
      else { film.t = more.t; film.frames = more.frames; }
    }
  };

  // Spikes in a second, from the intervals between the latest.
  const rateOf = (times, until) => {
    const stop = neuronPlots.firstFrom(times, until + 1e-9), start = neuronPlots.firstFrom(times, until - RECENT);
    const n = stop - start;
    if (n < 1) return 0;
    const over = Math.max(1, Math.min(RECENT, until));
    if (n < 3) return 1000 * n / over;
    const length = (times[stop - 1] - times[start]) / (n - 1);
    return until - times[stop - 1] > 2.5 * length ? 1000 * n / over : 1000 / length;
  };

  // ---------------------------------------------------------------------------------------------------------------
  // What is seen: a card for each graph, raster and cell.
  const build = () => {
    const cards = $("cards");
    cards.replaceChildren();
    drawings = [];
    const card = (title, kind) => {
      const section = make("section", undefined, cards, `card ${kind}`);
      const head = make("header", undefined, section);
      make("h2", title, head);
      const legend = make("ul", undefined, head, "legend");
      const canvas = make("canvas", undefined, section);
      canvas.setAttribute("role", "img"); canvas.setAttribute("aria-label", title);
      return {canvas, legend};
    };
    for (const graph of layout.graphs) {
      const {canvas, legend} = card(graph.title, "graph");
      const rates = graph.traces.map((trace, place) => {
        const item = make("li", undefined, legend);
        const dot = make("span", undefined, item, "dot");
        dot.style.setProperty("--c", `var(--c${place % neuronPlots.COLORS})`);
        make("span", trace.name, item).title = `${trace.path} ${trace.field}`;
        return trace.field === "Vm" ? make("b", "", item, "rate") : null;
      });
      drawings.push({kind: "graph", canvas, graph, rates});
    }
    for (const network of layout.networks) drawings.push({kind: "raster", ...card(network.title, "raster"), network});
    for (const cell of layout.cells) drawings.push({kind: "cell", ...card(cell.title, "cell"), cell});
    $("nothing").hidden = drawings.length > 0;
    const others = cards.querySelectorAll(".card:not(.graph)");
    if (others.length === 1) others[0].classList.add("wide");
    empty();
    panel();
  };

  const view = () => {
    const wide = Number($("window").value);
    if (!live && !wide) return {from: data.film.begin, to: Math.max(data.film.end, data.film.begin + 1), until: now, cursor: now};
    const to = Math.max(now, (live ? 0 : data.film.begin) + wide);
    return {from: to - wide, to, until: now, cursor: null};
  };

  const draw = () => {
    dirty = false;
    const seen = view();
    for (const one of drawings) {
      if (one.kind === "graph") {
        const film = films[one.graph.path];
        neuronPlots.graph(one.canvas, film, one.graph.unit, seen);
        one.rates.forEach((place, trace) => {
          if (!place) return;
          place.hidden = film.spikes[trace].length < 2;  // a voltage that rises once is no rhythm
          const rate = rateOf(film.spikes[trace], now);
          place.textContent = `${rate < 10 ? rate.toFixed(1) : Math.round(rate)} Hz`;
          place.dataset.rate = rate.toFixed(3);
        });
      } else if (one.kind === "raster") {
        neuronPlots.raster(one.canvas, films[one.network.path], one.network.names, seen);
      } else {
        const film = films[one.cell.path];
        const at = live ? film.frames.length - 1 : Math.max(0, neuronPlots.firstFrom(film.t, now + 1e-9) - 1);
        neuronPlots.cell(one.canvas, one.cell, film.frames[at]);
      }
    }
    $("time").textContent = `${now.toFixed(now < 1000 ? 2 : 1)} ms`;
    root.dataset.time = now;
  };

  // ---------------------------------------------------------------------------------------------------------------
  // The control panel that the script describes.
  const panel = () => {
    const box = $("forms");
    box.replaceChildren();
    for (const form of layout.forms) {
      const set = make("fieldset", undefined, box);
      make("legend", form.title, set);
      if (!live) set.disabled = true;
      for (const widget of form.widgets) set.append(control(widget));
    }
    $("noforms").hidden = layout.forms.length > 0;
  };

  const control = (widget) => {
    const row = make("div", undefined, undefined, `widget ${widget.kind}`);
    row.dataset.path = widget.path;
    if (widget.kind === "button") {
      const button = make("button", widget.label, row);
      button.type = "button";
      button.addEventListener("click", () => act({action: "widget", path: widget.path}));
      return row;
    }
    const label = make("label", undefined, row);
    const input = make("input");
    input.dataset.path = widget.path;
    if (widget.kind === "toggle") {
      input.type = "checkbox"; input.checked = Boolean(widget.value);
      label.append(input); make("span", widget.label, label);
      input.addEventListener("change", () => act({action: "widget", path: widget.path, value: input.checked ? 1 : 0}));
      return row;
    }
    make("span", widget.label, label);
    const field = make("span", undefined, label, "field");
    field.append(input);
    if (widget.unit) make("small", widget.unit, field);
    input.type = "text"; input.value = widget.value; input.spellcheck = false; input.autocomplete = "off";
    if (widget.numeric) input.inputMode = "decimal";
    input.addEventListener("change", () => act({action: "widget", path: widget.path, value: input.value}));
    return row;
  };

  // Values that the simulation has set; a field in which somebody writes is left alone.
  const show = (values) => {
    for (const input of document.querySelectorAll("#forms input")) {
      const value = values[input.dataset.path];
      if (value === undefined || input === document.activeElement) continue;
      if (input.type === "checkbox") input.checked = Boolean(value); else if (input.value !== String(value)) input.value = value;
    }
  };

  const message = (text, kind) => {
    $("message").textContent = text; $("message").hidden = !text; $("message").className = kind || "";
  };

  const mark = () => {
    $("play").textContent = running ? "❚❚ Pause" : live ? "▶ Start" : "▶ Play";
    $("play").setAttribute("aria-pressed", String(running));
    root.dataset.running = String(running);
  };

  // ---------------------------------------------------------------------------------------------------------------
  // Live: the page asks for what is new, many times a second while it can be seen.
  const ask = async (path, content, query = "") => {
    const options = content === undefined ? {} : {
      method: "POST", headers: {"Content-Type": "application/json"}, body: JSON.stringify(content),
    };
    const answer = await fetch(`${path}?token=${encodeURIComponent(token)}${query}`, options);
    const state = await answer.json();
    if (!answer.ok) throw new Error(state.error);
    return state;
  };

  const act = async (content) => {
    try {
      await ask("/act", content);
      message("");
      if (content.action === "widget") root.dataset.acted = Number(root.dataset.acted || 0) + 1;
    } catch (error) {
      message(error instanceof TypeError ? "The simulation has ended: start the command again, and open the address that it prints."
        : error.message, "wrong");
    }
    look();
  };

  const tell = (state) => {
    if (state.version !== version) { layout = state.layout; version = state.version; build(); }
    if (state.epoch !== epoch || state.cursor < cursor) { epoch = state.epoch; empty(); }
    cursor = state.cursor; now = state.time;
    append(state);
    show(state.values);
    if (state.running !== running) { running = state.running; }
    mark();
    $("busy").hidden = !state.busy;
    if (state.trouble) message(state.trouble, "wrong");
    const said = $("said");
    if (said.textContent !== state.said.join("\n")) { said.textContent = state.said.join("\n"); said.scrollTop = said.scrollHeight; }
    $("saidbox").hidden = !state.said.length;
    root.dataset.ready = "true";
    dirty = true;
  };

  const look = () => {
    if (asked) return asked;
    asked = ask("/state", undefined, `&after=${cursor}&epoch=${epoch}&version=${version}`).then(tell, (error) => {
      if (error instanceof TypeError) {
        message("The simulation has ended. What was drawn stays; start the command again to go on.", "wrong");
        running = false; mark();
      }
    }).finally(() => { asked = null; });
    return asked;
  };

  const watch = async () => {
    if (!document.hidden) await look();
    setTimeout(watch, running ? 50 : 200);
  };

  const startLive = () => {
    $("play").addEventListener("click", () => act({action: running ? "pause" : "start"}));
    $("step").addEventListener("click", () => act({action: "step", duration: 1}));
    $("reset").addEventListener("click", () => act({action: "reset"}));
    $("speed").addEventListener("change", () => act({action: "speed", value: Number($("speed").value)}));
    $("keep").addEventListener("click", () => { location.href = `/film?token=${encodeURIComponent(token)}`; });
    $("line").addEventListener("submit", async (event) => {
      event.preventDefault();
      const text = $("command").value.trim();
      if (!text) return;
      $("command").select();
      await act({action: "command", text});
    });
    document.addEventListener("visibilitychange", () => { if (!document.hidden) look(); });
    watch();
  };

  // ---------------------------------------------------------------------------------------------------------------
  // A film: all of it is in the page.
  const startFilm = () => {
    build();
    append(data.film);
    const {begin, end} = data.film;
    let before = null;
    now = begin;
    const scrub = $("scrub");
    scrub.min = begin; scrub.max = end; scrub.step = Math.max((end - begin) / 2000, 1e-6);
    const go = (time) => { now = Math.min(end, Math.max(begin, time)); scrub.value = now; dirty = true; };
    const play = (on) => {
      if (on && now >= end) go(begin);
      running = on; before = null; mark();
    };
    $("play").addEventListener("click", () => play(!running));
    $("reset").addEventListener("click", () => { play(false); go(begin); });
    $("step").addEventListener("click", () => { play(false); go(now + 1); });
    scrub.addEventListener("input", () => { play(false); go(Number(scrub.value)); });
    const advance = (moment) => {
      if (running) {
        if (before !== null) go(now + (moment - before) / 1000 * (Number($("speed").value) || 2000));
        before = moment;
        if (now >= end) play(false);
      }
      requestAnimationFrame(advance);
    };
    go(end); mark();
    root.dataset.ready = "true";
    requestAnimationFrame(advance);
  };

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|SELECT|BUTTON|TEXTAREA)$/.test(event.target.tagName)) return;
    if (event.key === " ") { $("play").click(); event.preventDefault(); }
    else if (event.key === "ArrowRight") $("step").click();
  });
  const paint = () => { if (dirty) draw(); requestAnimationFrame(paint); };
  $("window").addEventListener("change", () => { dirty = true; });
  window.addEventListener("resize", () => { dirty = true; });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { dirty = true; });
  if (live) { build(); startLive(); } else startFilm();
  mark();
  requestAnimationFrame(paint);
})();
