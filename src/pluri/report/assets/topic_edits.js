/* Names, merges and drops that the reader would like: a list to be saved, which a command applies to the model. */
function editing(page) {
  const edits = [], place = document.getElementById("edits"), { data, byIndex } = page;
  const before = new Map(data.nodes.map((node) => [node.index, [node.name, node.label]]));
  const told = {
    rename: (edit) => "topic " + edit.topic + " is called " + edit.name,
    merge: (edit) => "topics " + edit.topics.join(" and ") + " are one",
    drop: (edit) => "topic " + edit.topic + " is dropped",
  };
  function redo() {
    for (const node of data.nodes) [node.name, node.label] = before.get(node.index);
    const struck = new Set();
    for (const edit of edits) {
      if (edit.edit === "rename") byIndex.get(edit.topic).name = byIndex.get(edit.topic).label = edit.name;
      else if (edit.edit === "merge") edit.topics.slice(1).forEach((topic) => struck.add(topic));
      else struck.add(edit.topic);
    }
    for (const node of data.nodes) page.rename(node, struck.has(node.index));
    overview();
    document.documentElement.dataset.edits = String(edits.length);
    page.refresh();
  }
  function add(edit) { edits.push(edit); redo(); }
  function overview() {
    place.replaceChildren();
    if (!edits.length) return;
    place.append(make("h3", {}, "Edits (" + edits.length + ")"), make("ul", { class: "edits" }, ...edits.map((edit, number) =>
      make("li", {}, told[edit.edit](edit), " ", make("button", { type: "button", class: "more", onclick: () => { edits.splice(number, 1); redo(); } }, "undo")))),
      make("button", { type: "button", class: "button", id: "save-edits", onclick: save }, "Save edits"),
      make("p", { class: "note" }, "A file edits.json: this page does not change the model."));
  }
  const asText = () => JSON.stringify({ edits }, null, 1) + "\n";
  const save = () => download("edits.json", "application/json", asText());
  function panel(node) {
    const name = make("input", { type: "text", id: "new-name", maxlength: "80", value: node.name || "", placeholder: "a name for this topic", "aria-label": "Name" });
    const other = make("select", { id: "merge-with", "aria-label": "Topic to merge with" }, make("option", { value: "" }, "merge with …"),
      ...[...data.nodes].filter((one) => one !== node).sort((a, b) => b.weight - a.weight).map((one) => make("option", { value: one.index }, one.index + " " + one.label)));
    const rename = () => { if (name.value.trim()) add({ edit: "rename", topic: node.index, name: name.value.trim() }); };
    name.addEventListener("keydown", (event) => { if (event.key === "Enter") rename(); event.stopPropagation(); });
    other.addEventListener("change", () => { if (other.value) add({ edit: "merge", topics: [node.index, Number(other.value)] }); });
    return make("details", { class: "edit", open: panel.open }, make("summary", { onclick: () => { panel.open = !panel.open; } }, "Edit"),
      make("div", { class: "edit-row" }, name, make("button", { type: "button", class: "button", id: "rename", onclick: rename }, "Rename")),
      make("div", { class: "edit-row" }, other, make("button", { type: "button", class: "button", id: "drop", onclick: () => add({ edit: "drop", topic: node.index }) }, "Drop")),
      edits.length ? make("div", { class: "edit-row" }, make("button", { type: "button", class: "button", onclick: save }, "Save " + counted(edits.length, "edit"))) : null);
  }
  panel.open = false;
  document.documentElement.dataset.edits = "0";
  return { panel, asText };
}
