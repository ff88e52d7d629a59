"use strict";
/* What all parts of the page about topics use. Text from the data only ever becomes text. */
const SVG = "http://www.w3.org/2000/svg";
function make(tag, attributes = {}, ...children) {
  return furnish(document.createElement(tag), attributes, children);
}
function draw(tag, attributes = {}, ...children) {
  return furnish(document.createElementNS(SVG, tag), attributes, children);
}
function furnish(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === false || value === null || value === undefined) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name.startsWith("--")) element.style.setProperty(name, value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}
const percent = (share) => {
  if (share === null || share === undefined) return "–";
  if (share === 0) return "0%";
  if (share < 0.001) return "<0.1%";
  return (100 * share).toFixed(share >= 0.1 ? 0 : 1) + "%";
};
const foldCase = (text) => text.normalize("NFKD").replace(/[\u0300-\u036f]/g, "").toLowerCase();
const counted = (number, name) => number.toLocaleString("en") + " " + name + (number === 1 ? "" : "s");
const dayText = (day) => new Date(day * 86400000).toISOString().slice(0, 10);

/* A file for the reader, made here: nothing is asked of any server. */
function download(name, type, text) {
  const link = make("a", { href: URL.createObjectURL(new Blob([text], { type })), download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
/* Spreadsheets run what begins with these signs: a quote before it makes it text. */
const cell = (value) => {
  let text = String(value === null || value === undefined ? "" : value);
  if (typeof value === "string" && /^[=+\-@\t\r]/.test(text)) text = "'" + text;
  return /[",\n\r]/.test(text) ? '"' + text.replaceAll('"', '""') + '"' : text;
};
const csv = (rows) => rows.map((row) => row.map(cell).join(",")).join("\r\n") + "\r\n";
