/* Shares over time: a stream of the largest topics, a slider, and what emerges and fades. */
function timeView(page) {
  const time = page.data.time, place = document.querySelector(".over-time");
  if (!time || !place) return { show() {}, panel: () => null, range: () => null };
  const WIDTH = 1000, HEIGHT = 340, LEFT = 8, FOOT = 26, LAYERS = 12;
  const n = time.names.length, row = new Map(time.topics.map((topic, number) => [topic, number]));
  const x = (period) => LEFT + (n > 1 ? (period * (WIDTH - 2 * LEFT)) / (n - 1) : (WIDTH - 2 * LEFT) / 2);
  const changing = new Set(time.changes.map((change) => change.topic));
  const total = (topic) => time.shares[row.get(topic)].reduce((sum, share, period) => sum + (share || 0) * time.documents[period], 0);
  const order = [...time.topics].sort((a, b) => total(b) - total(a));
  const layers = [...new Set([...order.filter((topic) => changing.has(topic)), ...order])].slice(0, LAYERS);
  layers.sort((a, b) => order.indexOf(a) - order.indexOf(b));
  const colorOf = new Map(layers.map((topic, number) => [topic, "var(--c" + (number % 8) + ")"]));

  /* Weeks without documents have no shares: the stream goes on as it was, and is pale there. */
  const filled = layers.map((topic) => {
    let last = 0;
    return time.shares[row.get(topic)].map((share) => (last = share === null ? last : share));
  });
  const svg = draw("svg", { viewBox: "0 0 " + WIDTH + " " + (HEIGHT + FOOT), class: "stream", role: "img", "aria-label": "Shares of the largest topics over time" });
  const below = new Array(n).fill(0);
  const top = Math.min(1, 1.02 * Math.max(...below.map((_, period) => filled.reduce((sum, shares) => sum + shares[period], 0)), 1e-6));
  const paths = new Map();
  layers.forEach((topic, number) => {
    const low = [...below];
    filled[number].forEach((share, period) => { below[period] = Math.min(1, below[period] + share); });
    const y = (value) => HEIGHT * (1 - value / top);
    let points = low.map((value, period) => [x(period), y(below[period])]), back = low.map((value, period) => [x(period), y(value)]).reverse();
    if (n === 1) { points = [[LEFT, points[0][1]], [WIDTH - LEFT, points[0][1]]]; back = [[WIDTH - LEFT, back[0][1]], [LEFT, back[0][1]]]; }
    const d = "M" + [...points, ...back].map(([a, b]) => a.toFixed(1) + " " + b.toFixed(1)).join("L") + "Z";
    const path = draw("path", { d, class: "layer", "data-topic": topic, style: "fill:" + colorOf.get(topic), onclick: () => page.go({ node: topic }) },
      draw("title", {}, page.label(topic)));
    paths.set(topic, path);
    svg.append(path);
  });
  const empty = time.names.map((_, period) => period).filter((period) => !time.documents[period]);
  for (const period of empty) svg.append(draw("rect", { x: x(period - 0.5), y: 0, width: x(1) - x(0), height: HEIGHT, class: "empty" }, draw("title", {}, time.names[period] + ": no documents")));
  const step = Math.max(1, Math.ceil(n / 9));
  for (let period = 0; period < n; period += step) {
    const end = n - 1 - period < 0.8 * step, at = end ? n - 1 : period;
    svg.append(draw("text", { x: x(at), y: HEIGHT + 18, class: "tick", "text-anchor": n > 1 && at === 0 ? "start" : end ? "end" : "middle" }, time.names[at]));
  }
  const cursor = draw("line", { y1: 0, y2: HEIGHT, class: "cursor" });
  svg.append(cursor);

  const slider = make("input", { type: "range", min: "0", max: String(n - 1), step: "1", id: "period", "aria-label": "Period",
    oninput: () => { page.state.period = Number(slider.value); mark(); }, onchange: () => page.go({ period: Number(slider.value) }, true) });
  const said = make("output", { for: "period" });
  const whole = make("button", { type: "button", class: "more", onclick: () => page.go({ period: null }, true) }, "all periods");
  const list = make("div", { class: "period-topics" });
  const key = make("p", { class: "stream-key" });
  const news = make("div", { class: "changes" });
  place.append(news, svg, make("div", { class: "slider" }, make("label", { for: "period" }, time.period), slider, said, whole), key, list);

  const line = (change) => make("li", { class: change.kind }, make("a", { href: page.address({ node: change.topic }), onclick: (event) => {
    event.preventDefault();
    page.go({ node: change.topic, period: Math.max(0, time.names.indexOf(change.found)) });
  } }, page.label(change.topic)), " " + percent(change.before) + " → " + percent(change.share) + " ± " + percent(change.error) + " since " + change.since +
    ", known by " + change.found + (change.p === null ? "" : " (p = " + change.p + ")"));
  for (const [kind, heading] of [["emerging", "Emerging"], ["fading", "Fading"]]) {
    const found = time.changes.filter((change) => change.kind === kind);
    if (found.length) news.append(make("h3", {}, heading), make("ul", {}, ...found.map(line)));
  }
  if (time.misfit) {
    const { words, before, share, since, found, p } = time.misfit;
    news.append(make("h3", {}, "New"), make("p", { class: "misfit" }, "Documents that no topic explains: " + percent(before) + " → " + percent(share) + " since " + since + ", known by " + found + " (p = " + p + "). They have more of these words: " + words.join(" ") + "."));
  }
  if (!time.changes.length && !time.misfit) news.append(make("p", { class: "note" }, "No topic emerges or fades."));
  news.append(make("p", { class: "note" }, "If nothing changed, the chance of any such alarm, in all topics and periods" + (time.looks ? " of " + time.looks + " looks" : "") + ", would be at most " +
    percent(time.rate) + "." + (time.undated ? " " + counted(time.undated, "document") + " without a date." : "") +
    (empty.length ? " " + counted(empty.length, time.period) + " without documents: pale." : "")));
  for (const topic of layers) key.append(make("a", { href: page.address({ node: topic }), class: "swatch", "--c": colorOf.get(topic), onclick: (event) => { event.preventDefault(); page.go({ node: topic }); } }, page.label(topic)));
  if (order.length > layers.length) key.append(make("span", { class: "note" }, "and " + counted(order.length - layers.length, "smaller topic") + " that are not drawn; the stream is " + percent(top) + " high"));

  function mark() {
    const period = page.state.period, chosen = page.state.node;
    slider.value = String(period === null ? n - 1 : period);
    said.textContent = period === null ? "all" : time.names[period] + " · " + counted(time.documents[period], "document");
    whole.hidden = period === null;
    cursor.style.visibility = period === null ? "hidden" : "visible";
    if (period !== null) { cursor.setAttribute("x1", x(period)); cursor.setAttribute("x2", x(period)); }
    svg.classList.toggle("narrowed", chosen !== null && paths.has(chosen));
    for (const [topic, path] of paths) path.classList.toggle("chosen", topic === chosen);
    if (period === null) { list.replaceChildren(); return; }
    const shares = time.topics.map((topic, number) => [topic, time.shares[number][period], time.errors[number][period]]).filter(([, share]) => share !== null);
    shares.sort((a, b) => b[1] - a[1]);
    list.replaceChildren(
      make("table", { class: "topic-table" }, make("thead", {}, make("tr", {}, make("th", {}, "topic"), make("th", {}, "share in " + time.names[period]), make("th", {}, "± error"))),
        make("tbody", {}, ...shares.slice(0, 15).map(([topic, share, error]) => make("tr", { "data-node": topic, onclick: () => page.go({ node: topic }) },
          make("td", {}, page.label(topic)), make("td", {}, percent(share)), make("td", {}, percent(error)))))),
      make("button", { type: "button", class: "more", onclick: () => page.go({ view: "documents" }) }, "Documents of " + time.names[period]));
  }

  /* One topic over time, with a band of two standard errors. */
  function panel(node) {
    const number = row.get(node.index);
    if (number === undefined) return null;
    const shares = time.shares[number], errors = time.errors[number];
    const most = Math.max(...shares.map((share, period) => (share || 0) + 2 * (errors[period] || 0)), 1e-6);
    const px = (period) => 4 + (n > 1 ? (period * 312) / (n - 1) : 156), py = (value) => 4 + 72 * (1 - Math.max(0, Math.min(value, most)) / most);
    const known = shares.map((share, period) => period).filter((period) => shares[period] !== null);
    const band = known.map((period) => px(period).toFixed(1) + " " + py(shares[period] + 2 * errors[period]).toFixed(1)).concat(
      known.map((period) => px(period).toFixed(1) + " " + py(shares[period] - 2 * errors[period]).toFixed(1)).reverse());
    const middle = known.map((period) => px(period).toFixed(1) + " " + py(shares[period]).toFixed(1));
    const figure = make("figure", { class: "fit over" }, draw("svg", { viewBox: "0 0 320 92", role: "img", "aria-label": "Share over time, with a band of two standard errors" },
      draw("path", { class: "band", d: "M" + band.join("L") + "Z" }), draw("path", { class: "curve", d: "M" + middle.join("L") }),
      draw("text", { x: 4, y: 90 }, time.names[0]), draw("text", { x: 316, y: 90, "text-anchor": "end" }, time.names[n - 1])),
      make("figcaption", {}, "up to " + percent(Math.max(...shares.map((share) => share || 0))) + " of a " + time.period + "; the band is two standard errors"));
    const changes = time.changes.filter((change) => change.topic === node.index);
    const drift = time.drifting.find(([topic]) => topic === node.index);
    return [make("h3", {}, "Over time"), figure, changes.length ? make("ul", { class: "changes" }, ...changes.map(line)) : null,
      drift ? make("p", { class: "note" }, "Words that drift: " + drift[1].map(([word, early, late]) => word + " " + percent(early) + " → " + percent(late)).join(", ")) : null];
  }
  const range = (period) => (period === null ? null : [time.days[period], period + 1 < n ? time.days[period + 1] : Infinity]);
  return { show: mark, panel, range, names: time.names };
}
