(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const byIndex = new Map(data.nodes.map((node) => [node.index, node]));
  const root = document.documentElement;
  const $ = (selector, within = document) => within.querySelector(selector);
  const $$ = (selector, within = document) => [...within.querySelectorAll(selector)];
  const state = { node: null, view: null, weight: 1, find: "", period: null };
  const views = $$("[role=tab]").map((tab) => tab.dataset.view);
  const drawn = new Map(), listed = new Map();
  let hits = [];
  for (const element of $$("a.node, tr[data-node]")) {
    const index = Number(element.dataset.node);
    drawn.set(index, [...(drawn.get(index) || []), element]);
  }

  const address = (changes) => {
    const next = { ...state, ...changes };
    const parts = [];
    if (next.node !== null) parts.push("node=" + next.node);
    if (next.view !== views[0]) parts.push("view=" + next.view);
    if (next.weight !== 1) parts.push("lambda=" + next.weight);
    if (next.find) parts.push("find=" + encodeURIComponent(next.find));
    if (next.period !== null) parts.push("time=" + next.period);
    return "#" + parts.join("&");
  };
  const color = (node) => "var(--c" + node.color + ")";
  const page = { data, byIndex, state, go, address, color, label: (index) => (byIndex.has(index) ? byIndex.get(index).label : "topic " + index), refresh: () => readAddress(), rename };
  const time = (page.time = timeView(page)), papers = documentsView(page), edits = editing(page);
  const main = new Map();
  for (const node of data.nodes) if (node.parents.length) main.set(node.index, node.parents[0][0]);

  /* ---- the address says what is shown ---- */
  function readAddress() {
    const given = new Map();
    for (const part of location.hash.slice(1).split("&")) {
      const at = part.indexOf("=");
      if (at < 0) continue;
      try { given.set(part.slice(0, at), decodeURIComponent(part.slice(at + 1))); } catch { /* not ours */ }
    }
    const index = given.has("node") ? Number(given.get("node")) : NaN;
    const weight = given.has("lambda") ? Number(given.get("lambda")) : 1;
    const before = state.node;
    state.node = byIndex.has(index) ? index : null;
    state.view = views.includes(given.get("view")) ? given.get("view") : views[0];
    state.weight = weight >= 0 && weight <= 1 ? weight : 1;
    state.find = given.get("find") || "";
    const period = given.has("time") ? Number(given.get("time")) : NaN;
    state.period = data.time && Number.isInteger(period) && period >= 0 && period < data.time.names.length ? period : null;
    show(before);
  }
  function go(changes, replace = false) {
    const target = address(changes);
    if (replace) { history.replaceState(null, "", target); readAddress(); }
    else if (location.hash === target || (target === "#" && !location.hash)) readAddress();
    else location.hash = target;
  }

  function show(before) {
    for (const name of views) {
      const open = name === state.view;
      $("#view-" + name).classList.toggle("open", open);
      const tab = $("#tab-" + name);
      tab.setAttribute("aria-selected", String(open));
      tab.tabIndex = open ? 0 : -1;
    }
    $("[data-zoom=fold]").hidden = state.view !== "graph";
    tools();
    $(".zoom").style.visibility = $("#view-" + state.view + " .canvas") ? "visible" : "hidden";
    fitOnce();
    choose(state.node);
    if ($("#find").value !== state.find) $("#find").value = state.find;
    search();
    const chosen = state.node !== null;
    $("#overview").hidden = chosen;
    $("#topic").hidden = !chosen;
    if (chosen) {
      panel(byIndex.get(state.node));
      if (before !== state.node) {
        bringIntoView();
        $("#panel").scrollTop = 0;
        if (narrow() && before !== undefined) $("#panel").scrollIntoView({ block: "start" });
      }
    }
    time.show();
    papers.show();
    root.dataset.node = chosen ? String(state.node) : "";
    root.dataset.view = state.view;
  }
  const narrow = () => matchMedia("(max-width: 860px)").matches;

  /* ---- the chosen topic, everywhere ---- */
  function choose(index) {
    for (const element of $$(".chosen")) element.classList.remove("chosen");
    for (const element of $$(".edge.near")) element.classList.remove("near");
    for (const element of $$("a.node")) element.setAttribute("tabindex", "-1");
    const first = index !== null ? index : data.roots[0];
    for (const element of drawn.get(first) || []) if (element.matches("a")) element.setAttribute("tabindex", "0");
    if (index === null) return;
    unfoldTo(index);
    for (const element of drawn.get(index) || []) element.classList.add("chosen");
    for (const item of listed.get(index) || []) {
      item.classList.add("chosen");
      if (!item.classList.contains("again")) reveal(item);
    }
    for (const edge of $$('.edge[data-child="' + index + '"], .edge[data-parent="' + index + '"]')) edge.classList.add("near");
  }
  function bringIntoView() {
    const open = $("#view-" + state.view);
    const canvas = $(".canvas", open) || open;
    const target = $(".chosen .row, a.node.chosen, tr.chosen", open);
    if (!target) return;
    const box = target.getBoundingClientRect(), frame = canvas.getBoundingClientRect();
    if (box.left < frame.left || box.right > frame.right) canvas.scrollLeft += box.left + box.width / 2 - frame.left - frame.width / 2;
    if (box.top < frame.top + 30 || box.bottom > frame.bottom) canvas.scrollTop += box.top + box.height / 2 - frame.top - frame.height / 2;
  }

  /* ---- everything about one topic ---- */
  function panel(node) {
    const crumbs = make("nav", { class: "crumbs", "aria-label": "Path" }, make("a", { href: address({ node: null }) }, "All topics"));
    for (const above of pathTo(node.index)) crumbs.append("›", make("a", { href: address({ node: above.index }) }, above.label));
    const figures = make("p", { class: "figures" }, make("span", {}, "topic ", make("b", {}, String(node.index))),
      make("span", {}, make("b", {}, percent(node.weight)), " of the tokens"));
    if (data.nodes.some((other) => other.depth > 0)) figures.append(make("span", {}, "level ", make("b", {}, String(node.depth))));
    data.scores.forEach((name, place) => {
      const value = node.scores[place];
      figures.append(make("span", {}, name + " ", make("b", {}, value === null ? "–" : String(Number(value.toPrecision(3))))));
    });
    const list = make("ul", { class: "words" });
    const output = make("output", {}, state.weight.toFixed(2));
    const slider = make("input", {
      type: "range", min: "0", max: "1", step: "0.05", value: String(state.weight), id: "relevance",
      "aria-label": "Relevance: from words that occur nowhere else (0) to the most probable words (1)",
      oninput: () => { state.weight = Number(slider.value); output.textContent = state.weight.toFixed(2); words(node, list); },
      onchange: () => history.replaceState(null, "", address({})),
    });
    words(node, list);
    const parts = [
      crumbs, make("h2", {}, node.name || node.label), figures,
      make("h3", {}, "Words"),
      make("div", { class: "relevance" }, make("label", { for: "relevance" }, "distinctive"), slider, make("span", {}, "probable · λ ", output)),
      list,
      make("p", { class: "key" }, make("i", { class: "k1" }), "in this topic", make("i", { class: "k2" }), "in all documents"),
    ];
    parts.push(...(time.panel(node) || []));
    if (node.documents.length) parts.push(make("h3", {}, "Documents"), documents(node));
    if (papers.size) parts.push(make("button", { type: "button", class: "more", id: "browse", onclick: () => go({ view: "documents" }) }, "Browse the documents of this topic"));
    if (node.parents.length) parts.push(make("h3", {}, node.parents.length > 1 ? "Parents" : "Parent"), links(node.parents));
    if (node.children.length) parts.push(make("h3", {}, "Below (" + node.children.length + ")"), links(node.children));
    if (node.near.length) parts.push(make("h3", {}, "Similar topics"), links(node.near));
    parts.push(edits.panel(node));
    $("#topic").replaceChildren(...parts.filter((part) => part));
  }
  function pathTo(index) {
    const path = [];
    for (let above = main.get(index); above !== undefined && path.length < 50; above = main.get(above)) path.unshift(byIndex.get(above));
    return path;
  }
  function relevance(node, place) {
    const p = node.p[place], all = data.marginal[node.words[place]] || Number.MIN_VALUE;
    return Math.log(p) - (1 - state.weight) * Math.log(all);
  }
  function words(node, list) {
    const order = node.words.map((_, place) => place).filter((place) => node.p[place] > 0);
    order.sort((a, b) => relevance(node, b) - relevance(node, a));
    const shown = order.slice(0, data.shown);
    const longest = Math.max(...shown.map((place) => Math.max(node.p[place], Math.min(data.marginal[node.words[place]], 1.5 * node.p[place]))), 1e-12);
    list.replaceChildren(...shown.map((place) => {
      const word = data.words[node.words[place]], p = node.p[place], all = data.marginal[node.words[place]];
      const track = make("span", { class: "track", "aria-hidden": "true" }, make("span", { class: "fill" }), make("span", { class: "all" }));
      track.firstChild.style.width = (100 * p / longest).toFixed(1) + "%";
      track.lastChild.style.left = Math.min(100 * all / longest, 100).toFixed(1) + "%";
      return make("li", {}, make("button", { type: "button", title: "Find topics with “" + word + "”", onclick: () => find(word) }, word),
        track, make("span", { class: "number" }, percent(p)));
    }));
  }
  function documents(node) {
    return make("div", { class: "documents" }, ...node.documents.map(([number, share]) => {
      const [title, excerpt] = data.documents[number];
      const summary = make("summary", {}, make("span", {}, title || "document " + number), make("small", {}, percent(share)));
      return make("details", { class: excerpt ? false : "bare" }, summary, excerpt ? make("p", {}, excerpt) : null);
    }));
  }
  function links(pairs, most = 12) {
    const items = pairs.map(([index, value]) => {
      const node = byIndex.get(index);
      return make("li", {}, make("a", { href: address({ node: index }) }, make("span", { class: "dot", "--c": color(node) }),
        make("span", {}, node.label), make("small", {}, percent(value))));
    });
    const list = make("ul", { class: "links" }, ...items.slice(0, most));
    if (items.length > most) {
      const more = make("button", { type: "button", class: "more", onclick: () => { list.append(...items.slice(most)); more.parentNode.remove(); } },
        "Show all " + items.length);
      list.append(make("li", {}, more));
    }
    return list;
  }

  /* A name that the reader gave, wherever the topic is shown. */
  function rename(node, struck) {
    for (const item of listed.get(node.index) || []) {
      item.classList.toggle("struck", struck);
      if (!item.classList.contains("again")) $(".name", item).textContent = node.label;
    }
    for (const element of drawn.get(node.index) || []) {
      element.classList.toggle("struck", struck);
      const text = element.matches("a") ? $("text:not(.badge text)", element) : null;
      if (!text) continue;
      if (text.dataset.first === undefined) { text.dataset.first = text.textContent; text.kept = [...text.childNodes]; }
      if (node.name) text.replaceChildren(node.name.length > 26 ? node.name.slice(0, 25) + "…" : node.name);
      else text.replaceChildren(...text.kept);
    }
  }

  /* ---- what is small or weak can be hidden; the strongest edge to a topic stays ---- */
  const least = { topic: 0, edge: 0 }, mass = new Map();
  function massOf(index) {
    if (!mass.has(index)) {
      mass.set(index, byIndex.get(index).weight);
      mass.set(index, byIndex.get(index).children.reduce((sum, [child]) => sum + (main.get(child) === index ? massOf(child) : 0), byIndex.get(index).weight));
    }
    return mass.get(index);
  }
  /* Of a large hierarchy the readable part is shown first: few children of each topic, no small branches, no weak edges. */
  const readable = data.readable ? { nodes: new Set(data.readable.nodes), edges: new Set(data.readable.edges.map(String)) } : null;
  let part = readable !== null;
  const hidden = (index) => (part && !readable.nodes.has(index)) || (least.topic > 0 && massOf(index) < least.topic);
  const weak = (parent, child) => part && !readable.edges.has(parent + "," + child) ? true : main.get(child) !== parent && (byIndex.get(child).parents.find(([other]) => other === parent) || [0, 1])[1] < least.edge;
  function hide() {
    for (const node of data.nodes) {
      const gone = hidden(node.index);
      for (const element of drawn.get(node.index) || []) if (element.closest("#view-map")) element.style.display = gone ? "none" : "";
      for (const item of listed.get(node.index) || []) item.hidden = gone;
    }
    arrange();
    root.dataset.hidden = String(data.nodes.filter((node) => hidden(node.index)).length);
  }
  const STEPS = [0, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5];
  function control(name, told) {
    const output = make("output", {}, "all");
    const slider = make("input", { type: "range", min: "0", max: String(STEPS.length - 1), step: "1", value: "0", id: "least-" + name, "aria-label": told,
      oninput: () => { least[name] = STEPS[Number(slider.value)]; output.textContent = least[name] ? "≥ " + percent(least[name]) : "all"; hide(); } });
    return make("label", {}, told, slider, output);
  }
  const box = make("input", { type: "checkbox", id: "readable", onchange: () => showPart(box.checked) });
  box.checked = part;
  /* What was asked for is shown, also where it is not in the readable part. */
  function showAll(index) { if (part && !readable.nodes.has(index)) showPart(false); }
  function showPart(only) { part = box.checked = only; graph.folded.clear(); hide(); if (graph.svg) foldIfMany(); }
  const few = readable ? [make("label", { title: "At most 12 topics below each, no branch of less than 1 %, no weak edges" }, "readable part", box)] : [];
  const controls = { graph: [...few, control("topic", "topics"), control("edge", "edges")], table: [make("button", { type: "button", class: "button", id: "save-table", onclick: saveTable }, "Save as CSV")] };
  controls.map = controls.outline = controls.graph.slice(0, few.length + 1);
  function tools() { $(".tools").replaceChildren(...(controls[state.view] || []).filter((element) => !element.matches("label") || data.nodes.length > 5)); }
  function tableText() {
    const deep = data.nodes.some((node) => node.depth > 0);
    const rows = [["topic", "name", ...(deep ? ["level", "parent"] : []), "share", ...data.scores, "words"]];
    for (const node of [...data.nodes].sort((a, b) => b.weight - a.weight || a.index - b.index)) {
      rows.push([node.index, node.name || "", ...(deep ? [node.depth, main.has(node.index) ? main.get(node.index) : ""] : []), node.weight, ...node.scores, node.words.slice(0, data.shown).map((number) => data.words[number]).join(" ")]);
    }
    return csv(rows);
  }
  function saveTable() { download("topics.csv", "text/csv;charset=utf-8", "\ufeff" + tableText()); }

  /* ---- outline: a tree for the keyboard and for screen readers ---- */
  function outline() {
    const place = $(".outline");
    const flat = data.nodes.every((node) => !node.children.length);
    const top = data.roots.map((index) => item(byIndex.get(index), null, 1));
    place.append(make("ul", { role: "tree", "aria-label": "Topics" }, ...top));
    if (!flat) {
      let layer = $$(".outline > ul > li");
      let shown = layer.length;
      while (layer.length) {
        const next = layer.flatMap((element) => $$(":scope > ul > li", element));
        if (shown + next.length > 60 && shown > layer.length) break;
        for (const element of layer) if (element.hasAttribute("aria-expanded")) fold(element, true);
        shown += next.length;
        layer = next;
      }
    }
    const first = $(".outline li");
    if (first) first.tabIndex = 0;
    place.addEventListener("click", (event) => {
      const element = event.target.closest("li");
      if (!element) return;
      if (event.target.closest(".fold") && element.hasAttribute("aria-expanded")) fold(element, element.getAttribute("aria-expanded") !== "true");
      else go({ node: Number(element.dataset.node) });
      focusItem(element);
    });
    place.addEventListener("keydown", outlineKeys);
  }
  function item(node, parent, level) {
    const again = parent !== null && main.get(node.index) !== parent;
    const below = again ? [] : node.children;
    const name = again ? node.label + " (see below " + byIndex.get(main.get(node.index)).label + ")" : node.label;
    const row = make("div", { class: "row" }, make("span", { class: "fold", "aria-hidden": "true" }, below.length ? "▸" : ""),
      make("span", { class: "dot", "--c": color(node) }), make("span", { class: "name" }, name), make("span", { class: "part" }, percent(node.weight)));
    const element = make("li", { role: "treeitem", tabindex: "-1", "data-node": node.index, "aria-level": level, class: again ? "again" : false,
      "aria-expanded": below.length ? "false" : false, "aria-label": name + ", " + percent(node.weight) }, row,
      below.length ? make("ul", { role: "group" }, ...below.map(([index]) => item(byIndex.get(index), node.index, level + 1))) : null);
    listed.set(node.index, [...(listed.get(node.index) || []), element]);
    return element;
  }
  function fold(element, open) { element.setAttribute("aria-expanded", String(open)); }
  function reveal(element) {
    for (let above = element.parentElement.closest("li"); above; above = above.parentElement.closest("li")) fold(above, true);
  }
  function focusItem(element) {
    for (const other of $$('.outline li[tabindex="0"]')) other.tabIndex = -1;
    element.tabIndex = 0;
    element.focus({ preventScroll: true });
    $(".row", element).scrollIntoView({ block: "nearest" });
  }
  function outlineKeys(event) {
    const here = event.target.closest("li");
    if (!here || event.altKey || event.ctrlKey || event.metaKey) return;
    const items = $$(".outline li").filter((element) => element.offsetParent !== null);
    const at = items.indexOf(here), open = here.getAttribute("aria-expanded");
    let next = null;
    if (event.key === "ArrowDown") next = items[at + 1];
    else if (event.key === "ArrowUp") next = items[at - 1];
    else if (event.key === "Home") next = items[0];
    else if (event.key === "End") next = items[items.length - 1];
    else if (event.key === "ArrowRight") { if (open === "false") fold(here, true); else if (open) next = $("li", here); }
    else if (event.key === "ArrowLeft") { if (open === "true") fold(here, false); else next = here.parentElement.closest("li"); }
    else if (event.key === "Enter" || event.key === " ") go({ node: Number(here.dataset.node) });
    else return;
    event.preventDefault();
    if (next) focusItem(next);
  }

  /* ---- branches of the graph can be folded; what is left moves together ---- */
  const FEW = 60, MOST_DOWN = 8, DRAW = "http://www.w3.org/2000/svg";
  const graph = { svg: $("#view-graph svg"), folded: new Set(), nodes: new Map(), edges: [] };
  function branches() {
    if (!graph.svg) return;
    graph.box = natural(graph.svg);
    for (const element of $$("a.node", graph.svg)) {
      const node = byIndex.get(Number(element.dataset.node)), at = element.transform.baseVal.getItem(0).matrix;
      const width = Number($(".card", element).getAttribute("width"));
      const entry = { element, node, x: at.e, y: at.f, width, badge: null };
      graph.nodes.set(node.index, entry);
      if (!node.children.length) continue;
      entry.badge = document.createElementNS(DRAW, "g");
      entry.badge.setAttribute("class", "badge");
      const back = document.createElementNS(DRAW, "rect"), text = document.createElementNS(DRAW, "text");
      text.setAttribute("text-anchor", "middle");
      text.setAttribute("dy", "0.35em");
      entry.badge.append(back, text);
      element.append(entry.badge);
    }
    graph.edges = $$(".edge", graph.svg).map((element) => ({ element, parent: Number(element.dataset.parent), child: Number(element.dataset.child), d: element.getAttribute("d") }));
    foldIfMany();
  }
  function foldIfMany() {
    if (data.nodes.filter((node) => !hidden(node.index)).length > FEW + 10) foldBelow();
    else arrange();
  }
  /* As many levels as are few topics together, and always one below the top. */
  function foldBelow() {
    let layer = data.roots.map((index) => byIndex.get(index)), seen = new Set(data.roots);
    for (let level = 0; layer.length; level++) {
      const next = [];
      for (const node of layer) for (const [index] of node.children) if (!seen.has(index) && !hidden(index)) { seen.add(index); next.push(byIndex.get(index)); }
      if (level > 0 && seen.size > FEW) { for (const node of layer) if (node.children.length) graph.folded.add(node.index); break; }
      layer = next;
    }
    arrange();
  }
  function arrange() {
    if (!graph.svg) return;
    const shown = new Set(data.roots), queue = [...data.roots];
    while (queue.length) {
      const index = queue.shift();
      if (graph.folded.has(index)) continue;
      for (const [child] of byIndex.get(index).children) if (!shown.has(child) && !hidden(child)) { shown.add(child); queue.push(child); }
    }
    const whole = graph.folded.size === 0 && least.topic === 0 && !part;
    const y = new Map();
    let row = 0;
    const under = (index) => byIndex.get(index).children.map(([child]) => child).filter((child) => shown.has(child) &&
      (byIndex.get(child).parents.find(([parent]) => shown.has(parent) && !graph.folded.has(parent)) || [])[0] === index);
    const place = (index) => {
      const below = graph.folded.has(index) ? [] : under(index);
      below.forEach(place);
      if (!below.length) { y.set(index, data.rows.margin + data.rows.pitch * row++); return; }
      /* In the middle of its children, but never so far down that the first of them are out of sight. */
      const first = y.get(below[0]), last = y.get(below[below.length - 1]);
      y.set(index, Math.min((first + last) / 2, first + MOST_DOWN * data.rows.pitch));
    };
    if (!whole) data.roots.forEach(place);
    let right = 0;
    for (const [index, entry] of graph.nodes) {
      entry.element.style.display = shown.has(index) ? "" : "none";
      entry.now = whole ? entry.y : y.get(index);
      if (shown.has(index)) { entry.element.setAttribute("transform", "translate(" + entry.x + " " + entry.now + ")"); right = Math.max(right, entry.x + entry.width); }
      if (!entry.badge) continue;
      entry.badge.style.display = !part || entry.node.children.some(([child]) => readable.nodes.has(child)) ? "" : "none";
      const hidden = graph.folded.has(index), text = hidden ? "+" + entry.node.children.length : "\u2212";
      const half = 7 + 3.5 * text.length;
      entry.badge.lastChild.textContent = text;
      for (const [name, value] of [["x", -half], ["y", -9], ["width", 2 * half], ["height", 18], ["rx", 9]]) entry.badge.firstChild.setAttribute(name, value);
      entry.badge.setAttribute("transform", "translate(" + (entry.width + (hidden ? half - 6 : 0)) + " 0)");
      entry.badge.classList.toggle("folded", hidden);
    }
    for (const edge of graph.edges) {
      const open = shown.has(edge.parent) && shown.has(edge.child) && !graph.folded.has(edge.parent) && !weak(edge.parent, edge.child);
      edge.element.style.display = open ? "" : "none";
      if (!open) continue;
      const from = graph.nodes.get(edge.parent), to = graph.nodes.get(edge.child), middle = (from.x + from.width + to.x) / 2;
      edge.element.setAttribute("d", whole ? edge.d : "M" + (from.x + from.width) + " " + from.now + "C" + middle + " " + from.now + " " + middle + " " + to.now + " " + to.x + " " + to.now);
    }
    const [width, height] = whole ? graph.box : [right + 52, 2 * data.rows.margin + data.rows.pitch * Math.max(row - 1, 0)];
    graph.svg.setAttribute("viewBox", "0 0 " + width + " " + height);
    const canvas = graph.svg.parentElement, size = sizes.get(canvas);
    if (size) { graph.svg.setAttribute("width", width * size); graph.svg.setAttribute("height", height * size); }
    root.dataset.shown = String(shown.size);
    graph.shown = shown;
    markFolded();
  }
  /* A search may find topics inside folded branches: what holds them says so. */
  function markFolded() {
    if (!graph.svg) return;
    for (const element of $$(".holds", graph.svg)) element.classList.remove("holds");
    for (const { node } of hits) {
      let index = node.index;
      while (index !== undefined && !graph.shown.has(index)) index = main.get(index);
      if (index !== undefined && index !== node.index) graph.nodes.get(index).element.classList.add("holds");
    }
  }
  /* What was pointed at stays under the pointer while the rest moves. */
  function toggle(index) {
    const entry = graph.nodes.get(index), canvas = graph.svg.parentElement, before = entry.element.getBoundingClientRect();
    if (!graph.folded.delete(index)) graph.folded.add(index);
    arrange();
    const after = entry.element.getBoundingClientRect();
    canvas.scrollLeft += after.left - before.left;
    canvas.scrollTop += after.top - before.top;
  }
  function unfoldTo(index) {
    showAll(index);
    const before = graph.folded.size;
    for (const above of pathTo(index)) graph.folded.delete(above.index);
    if (graph.folded.size !== before) arrange();
  }

  /* ---- pictures: native scrolling, and a size ---- */
  const sizes = new Map();
  function natural(svg) { const box = svg.viewBox.baseVal; return [box.width, box.height]; }
  function setSize(canvas, size, x, y) {
    const svg = $("svg", canvas), [width, height] = natural(svg);
    const before = sizes.get(canvas) || 1, next = Math.min(4, Math.max(0.05, size));
    const left = x === undefined ? canvas.clientWidth / 2 : x, top = y === undefined ? canvas.clientHeight / 2 : y;
    const px = (canvas.scrollLeft + left) / before, py = (canvas.scrollTop + top) / before;
    svg.setAttribute("width", (width * next).toFixed(1));
    svg.setAttribute("height", (height * next).toFixed(1));
    sizes.set(canvas, next);
    canvas.scrollLeft = px * next - left;
    canvas.scrollTop = py * next - top;
  }
  function whole(canvas) {
    const [width, height] = natural($("svg", canvas));
    return Math.min((canvas.clientWidth - 4) / width, (canvas.clientHeight - 4) / height);
  }
  function fitOnce() {
    const canvas = $("#view-" + state.view + " .canvas");
    if (!canvas || sizes.has(canvas) || !canvas.clientWidth) return;
    /* The whole picture where its words can then be read; else its beginning. */
    const map = canvas.parentElement.id === "view-map";
    const least = map ? 0.95 : narrow() ? 0.75 : 0.8, [width, height] = natural($("svg", canvas)), fitting = whole(canvas);
    setSize(canvas, fitting >= least ? Math.min(1.35, fitting) : Math.min(1.05, Math.max(canvas.clientWidth / width, least)));
    const size = sizes.get(canvas);
    canvas.scrollLeft = map ? (width * size - canvas.clientWidth) / 2 : 0;
    const start = drawn.get(data.roots[0]).find((element) => canvas.contains(element));
    const at = start ? start.transform.baseVal.getItem(0).matrix.f : height / 2;
    canvas.scrollTop = at * size - canvas.clientHeight / 2;
  }
  function pictures() {
    for (const button of $$("[data-zoom]")) {
      button.addEventListener("click", () => {
        const canvas = $("#view-" + state.view + " .canvas");
        if (!canvas) return;
        const now = sizes.get(canvas) || 1;
        if (button.dataset.zoom === "fold") {
          if (graph.folded.size) graph.folded.clear(), arrange();
          else foldBelow(), graph.folded.size || (data.roots.flatMap((top) => byIndex.get(top).children).forEach(([child]) => byIndex.get(child).children.length && graph.folded.add(child)), arrange());
          sizes.delete(canvas);
          fitOnce();
          return;
        }
        setSize(canvas, { in: now * 1.25, out: now / 1.25, fit: whole(canvas) }[button.dataset.zoom]);
      });
    }
    for (const canvas of $$(".canvas")) {
      canvas.addEventListener("wheel", (event) => {
        if (!event.ctrlKey && !event.metaKey) return;
        event.preventDefault();
        const frame = canvas.getBoundingClientRect();
        setSize(canvas, (sizes.get(canvas) || 1) * Math.exp(-event.deltaY * 0.0025), event.clientX - frame.left, event.clientY - frame.top);
      }, { passive: false });
      let held = null, moved = false;
      canvas.addEventListener("pointerdown", (event) => {
        if (event.pointerType !== "mouse" || event.button !== 0) return;
        held = [event.clientX + canvas.scrollLeft, event.clientY + canvas.scrollTop, event.clientX, event.clientY];
        moved = false;
      });
      addEventListener("pointermove", (event) => {
        if (!held) return;
        if (Math.abs(event.clientX - held[2]) + Math.abs(event.clientY - held[3]) > 5) { moved = true; canvas.classList.add("held"); }
        if (moved) { canvas.scrollLeft = held[0] - event.clientX; canvas.scrollTop = held[1] - event.clientY; }
      });
      addEventListener("pointerup", () => { held = null; canvas.classList.remove("held"); });
      canvas.addEventListener("dragstart", (event) => event.preventDefault());
      canvas.addEventListener("click", (event) => {
        if (moved) { event.preventDefault(); moved = false; return; }
        const link = event.target.closest("a.node");
        if (link && event.target.closest(".badge")) { event.preventDefault(); toggle(Number(link.dataset.node)); return; }
        if (link && !event.ctrlKey && !event.metaKey && !event.shiftKey) { event.preventDefault(); go({ node: Number(link.dataset.node) }); }
      });
      canvas.addEventListener("keydown", canvasKeys);
    }
  }
  function canvasKeys(event) {
    const link = event.target.closest("a.node");
    if (!link || event.altKey || event.ctrlKey || event.metaKey) return;
    const node = byIndex.get(Number(link.dataset.node)), canvas = link.closest(".canvas");
    if (event.key === " ") { event.preventDefault(); go({ node: node.index }); return; }
    if ((event.key === "+" || event.key === "-") && canvas.contains(graph.svg) && node.children.length) {
      if (graph.folded.has(node.index) === (event.key === "+")) toggle(node.index);
      return;
    }
    const way = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] }[event.key];
    if (!way) return;
    event.preventDefault();
    /* The nearest topic in that direction; what lies straight ahead counts as nearer. */
    const from = link.getBoundingClientRect(), x = from.left + from.width / 2, y = from.top + from.height / 2;
    let best = null, least = Infinity;
    for (const other of $$("a.node", canvas)) {
      if (other === link || other.style.display === "none") continue;
      const box = other.getBoundingClientRect();
      const dx = box.left + box.width / 2 - x, dy = box.top + box.height / 2 - y;
      const ahead = dx * way[0] + dy * way[1], aside = Math.abs(dx * way[1]) + Math.abs(dy * way[0]);
      if (ahead > 1 && ahead + 2.5 * aside < least) { least = ahead + 2.5 * aside; best = other; }
    }
    if (!best) return;
    for (const other of $$('a.node[tabindex="0"]', canvas)) other.setAttribute("tabindex", "-1");
    best.setAttribute("tabindex", "0");
    best.focus();
  }

  /* ---- table ---- */
  function table() {
    const body = $(".topic-table tbody");
    for (const head of $$("th[data-sort]")) {
      const place = [...head.parentElement.children].indexOf(head);
      const button = make("button", { type: "button" }, head.textContent);
      head.replaceChildren(button);
      button.addEventListener("click", () => {
        const down = head.getAttribute("aria-sort") !== "descending";
        for (const other of $$("th[aria-sort]")) other.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        const rows = [...body.rows];
        rows.sort((a, b) => (Number(b.cells[place].dataset.value) - Number(a.cells[place].dataset.value)) * (down ? 1 : -1));
        body.append(...rows);
      });
      if (head.textContent === "share") head.setAttribute("aria-sort", "descending");
    }
    body.addEventListener("click", (event) => {
      const row = event.target.closest("tr");
      if (row && !event.target.closest("a")) go({ node: Number(row.dataset.node) });
    });
    for (const link of $$("a", body)) link.addEventListener("click", (event) => { event.preventDefault(); go({ node: Number(link.closest("tr").dataset.node) }); });
  }

  /* ---- search ---- */
  const folded = data.words.map(foldCase), vocabulary = data.vocabulary.words.map(foldCase);
  const titles = data.documents.map(([title, excerpt]) => foldCase(title + " " + excerpt));
  /* Every word of the vocabulary, whether or not a topic lists it: words that begin so, and the topics they come from. */
  function wordsLike(part) {
    const found = [];
    for (let number = 0; number < vocabulary.length; number++) if (vocabulary[number].startsWith(part)) found.push(number);
    return found.sort((a, b) => (vocabulary[b] === part) - (vocabulary[a] === part) || vocabulary[a].length - vocabulary[b].length || a - b);
  }
  function matches(text) {
    const wanted = foldCase(text).split(/\s+/).filter(Boolean);
    const found = [];
    if (!wanted.length) return found;
    const rare = wanted.map((part) => {
      const topics = new Map();
      for (const number of wordsLike(part).slice(0, 500)) data.vocabulary.topics[number].forEach((topic) => { if (!topics.has(topic)) topics.set(topic, data.vocabulary.words[number]); });
      return topics;
    });
    for (const node of data.nodes) {
      let score = 0, said = [], all = true;
      for (const [at, part] of wanted.entries()) {
        let gained = 0;
        node.words.forEach((number, place) => {
          if (folded[number].startsWith(part)) { gained += node.p[place]; if (said.length < 3) said.push(data.words[number]); }
        });
        if (!gained && node.name && foldCase(node.name).includes(part)) gained = 0.01;
        if (!gained && String(node.index) === part) gained = 0.01;
        if (!gained && rare[at].has(node.index)) { gained = 0.0005; said.push(rare[at].get(node.index)); }
        if (!gained) for (const [number] of node.documents) if (titles[number].includes(part)) { gained = 0.001; said.push("a document"); break; }
        if (!gained) all = false;
        score += gained;
      }
      if (all) found.push({ node, score, said: [...new Set(said)] });
    }
    return found.sort((a, b) => b.score - a.score || a.node.index - b.node.index);
  }
  function search() {
    hits = matches(state.find);
    const searching = state.find.trim() !== "";
    root.classList.toggle("searching", searching);
    for (const element of $$(".hit, .holds")) element.classList.remove("hit", "holds");
    for (const { node } of hits) {
      for (const element of drawn.get(node.index) || []) element.classList.add("hit");
      for (const element of listed.get(node.index) || []) {
        element.classList.add("hit");
        for (let above = element.parentElement.closest("li"); above; above = above.parentElement.closest("li")) above.classList.add("holds");
      }
    }
    markFolded();
    const box = $("#found");
    box.replaceChildren(make("p", { role: "status" }, hits.length === 1 ? "1 topic" : hits.length + " topics"),
      ...hits.slice(0, 12).map(({ node, score, said }) => make("a", { class: "of-topic", href: address({ node: node.index }), onclick: (event) => { event.preventDefault(); close(); go({ node: node.index }); } },
        make("span", {}, node.label), make("small", {}, said.join(", ") + (score >= 0.001 ? " " + percent(score) : "")))),
      ...others());
    if (!searching) box.hidden = true;
    root.dataset.hits = searching ? String(hits.length) : "";
  }
  /* Words of the vocabulary, and documents. */
  function others() {
    const wanted = foldCase(state.find).split(/\s+/).filter(Boolean);
    if (!wanted.length) return [];
    const like = wordsLike(wanted[wanted.length - 1]), texts = papers.search(state.find), parts = [];
    root.dataset.words = String(like.length);
    if (like.length) {
      parts.push(make("h4", {}, "Words (" + like.length.toLocaleString("en") + ")"), ...like.slice(0, 6).map((number) => {
        const topics = data.vocabulary.topics[number];
        return make("a", { href: address({ node: topics[0] }), onclick: (event) => { event.preventDefault(); close(); go({ node: topics[0] }); } },
          make("span", {}, data.vocabulary.words[number]), make("small", {}, topics.map((topic, at) => "topic " + topic + " " + data.vocabulary.shares[number][at] + "%").join(", ")));
      }));
      if (data.vocabulary.words.length < data.vocabulary.total) parts.push(make("p", {}, "among the " + data.vocabulary.words.length.toLocaleString("en") + " most frequent words of " + data.vocabulary.total.toLocaleString("en")));
    }
    root.dataset.texts = String(texts.length);
    if (texts.length) {
      parts.push(make("h4", {}, "Documents (" + texts.length.toLocaleString("en") + ")"), ...texts.slice(0, 6).map((number) => make("a", { href: address({ view: "documents", node: null }), onclick: (event) => { event.preventDefault(); close(); go({ view: "documents", node: null }); } },
        make("span", {}, papers.title(number)))),
        make("a", { href: address({ view: "documents", node: null }), onclick: (event) => { event.preventDefault(); close(); go({ view: "documents", node: null }); } }, make("span", {}, "Show them all")));
    }
    return parts;
  }
  function close() { $("#found").hidden = true; }
  function find(text) {
    go({ find: text }, true);
    $("#found").hidden = !text.trim();
    $("#find").focus();
  }
  function searchBox() {
    const input = $("#find");
    input.addEventListener("input", () => { go({ find: input.value }, true); $("#found").hidden = !input.value.trim(); });
    input.addEventListener("focus", () => { if (input.value.trim()) $("#found").hidden = false; });
    input.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && hits.length) { close(); go({ node: hits[0].node.index }); }
      else if (event.key === "ArrowDown") { const link = $("#found a"); if (link) { event.preventDefault(); link.focus(); } }
      else if (event.key === "Escape") { event.stopPropagation(); find(""); input.blur(); }
    });
    $("#found").addEventListener("keydown", (event) => {
      const all = $$("#found a"), at = all.indexOf(document.activeElement);
      if (event.key === "ArrowDown" && all[at + 1]) all[at + 1].focus();
      else if (event.key === "ArrowUp") (all[at - 1] || input).focus();
      else if (event.key === "Escape") { event.stopPropagation(); input.focus(); close(); }
      else return;
      event.preventDefault();
    });
    addEventListener("pointerdown", (event) => { if (!event.target.closest(".search")) close(); });
  }

  /* ---- all together ---- */
  function tabs() {
    for (const tab of $$("[role=tab]")) {
      tab.addEventListener("click", () => { go({ view: tab.dataset.view }); bringIntoView(); });
      tab.addEventListener("keydown", (event) => {
        const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
        if (!step) return;
        const next = views[(views.indexOf(tab.dataset.view) + step + views.length) % views.length];
        go({ view: next });
        $("#tab-" + next).focus();
      });
    }
    addEventListener("keydown", (event) => {
      const typing = event.target.matches && event.target.matches("input, textarea, select");
      if (event.key === "/" && !typing) { event.preventDefault(); $("#find").focus(); }
      else if (event.key === "Escape" && (state.node !== null || state.find || state.period !== null)) { close(); go({ node: null, find: "", period: null }); }
    });
    $("h1 a").addEventListener("click", (event) => { event.preventDefault(); go({ node: null, find: "" }); });
  }

  root.classList.add("js");
  outline();
  branches();
  if (part) hide();
  pictures();
  table();
  searchBox();
  tabs();
  addEventListener("hashchange", readAddress);
  addEventListener("resize", () => fitOnce());
  state.node = undefined;
  readAddress();
  root.dataset.ready = "true";
})();
