/* All documents that the page knows: by topic, by date, by their words. */
function documentsView(page) {
  const { data } = page, place = document.querySelector(".browse"), FEW = 50;
  const index = data.index || examples();
  const n = index.titles.length;
  const folded = index.titles.map((title, number) => foldCase(title + " " + index.excerpts[number]));
  let shown = FEW, last = "";

  /* Without an index the documents are those that stand for the topics. */
  function examples() {
    const topics = data.documents.map(() => []), shares = data.documents.map(() => []);
    for (const node of data.nodes) for (const [number, share] of node.documents) { topics[number].push(node.index); shares[number].push(Math.round(100 * share)); }
    return { total: data.documents.length, titles: data.documents.map(([title]) => title), excerpts: data.documents.map(([, excerpt]) => excerpt), topics, shares, days: null, places: null, few: true };
  }
  function search(text) {
    const wanted = foldCase(text).split(/\s+/).filter(Boolean), found = [];
    if (!wanted.length) return found;
    for (let number = 0; number < n; number++) if (wanted.every((part) => folded[number].includes(part))) found.push(number);
    return found;
  }
  const shareOf = (number, topic) => { const at = index.topics[number].indexOf(topic); return at < 0 ? 0 : index.shares[number][at]; };
  const sorting = make("select", { id: "order", "aria-label": "Order", onchange: () => { shown = FEW; fill(); } },
    make("option", { value: "share" }, "by share"), make("option", { value: "given" }, "as they came"));
  if (index.days) sorting.append(make("option", { value: "new" }, "newest first"), make("option", { value: "old" }, "oldest first"));
  const head = make("p", { class: "browse-head" }), filters = make("p", { class: "filters" });
  const list = make("div", { class: "documents" }), more = make("button", { type: "button", class: "more", onclick: () => { shown += 4 * FEW; fill(); } });
  place.append(filters, head, list, more, make("p", { class: "note left-out" }, leftOut()));

  function leftOut() {
    if (index.few) return "The page has the documents that stand for the topics, and no others.";
    const cut = "Beginnings of texts are cut at " + index.excerpt + " characters.";
    if (n === index.total) return "All " + counted(n, "document") + " are listed. " + cut;
    return "The page lists " + n.toLocaleString("en") + " of " + counted(index.total, "document") + ", drawn at random, to stay below 10 MB; the search finds these, and those that stand for the topics. " + cut;
  }
  function matching() {
    const { node, find, period } = page.state, range = page.time.range(period === undefined ? null : period);
    let found = find.trim() ? search(find) : [...Array(n).keys()];
    if (node !== null) found = found.filter((number) => shareOf(number, node) > 0);
    if (range && index.days) found = found.filter((number) => index.days[number] !== null && index.days[number] >= range[0] && index.days[number] < range[1]);
    const way = sorting.value, day = (number) => (index.days[number] === null ? -Infinity : index.days[number]);
    const greatest = (number) => (node !== null ? shareOf(number, node) : index.shares[number][0] || 0);
    if (way === "share" && node !== null) found.sort((a, b) => greatest(b) - greatest(a) || a - b);
    else if (way === "new") found.sort((a, b) => day(b) - day(a) || a - b);
    else if (way === "old") found.sort((a, b) => day(a) - day(b) || a - b);
    return found;
  }
  const chip = (text, changes) => make("button", { type: "button", class: "chip", title: "Take away", onclick: () => page.go(changes) }, text + " ×");
  function item(number) {
    const chips = index.topics[number].map((topic, at) => page.byIndex.has(topic) ? make("a", { class: "topic-chip", href: page.address({ node: topic }), "--c": page.color(page.byIndex.get(topic)), title: page.label(topic) },
      page.label(topic).split(" ").slice(0, 2).join(" ") + " " + index.shares[number][at] + "%") : null);
    const title = index.titles[number] || "document " + ((index.places ? index.places[number] : number) + 1), excerpt = index.excerpts[number];
    return make("details", { class: excerpt ? false : "bare" }, make("summary", {}, make("span", {}, title),
      index.days && index.days[number] !== null ? make("small", {}, dayText(index.days[number])) : null), make("div", { class: "chips" }, ...chips), excerpt ? make("p", {}, excerpt) : null);
  }
  function fill() {
    if (page.state.view !== "documents") return;
    const { node, find, period } = page.state, now = JSON.stringify([node, find, period]);
    if (now !== last) shown = FEW;
    last = now;
    const found = matching();
    filters.replaceChildren(sorting, ...(node !== null ? [chip(page.label(node), { node: null })] : []), ...(find.trim() ? [chip("“" + find + "”", { find: "" })] : []),
      ...(period !== null && page.time.names ? [chip(page.time.names[period], { period: null })] : []));
    head.textContent = counted(found.length, "document") + (found.length < n ? " of " + n.toLocaleString("en") : "");
    list.replaceChildren(...found.slice(0, shown).map(item));
    more.hidden = found.length <= shown;
    more.textContent = "Show more of " + found.length.toLocaleString("en");
    document.documentElement.dataset.documents = String(found.length);
  }
  return { show: fill, search, title: (number) => index.titles[number] || "document " + (number + 1), topicOf: (number) => index.topics[number].find((topic) => page.byIndex.has(topic)), size: n };
}
