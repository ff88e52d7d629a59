"use strict";
// Drawings of the page about neurons: running traces, rasters of spikes, and cells coloured by their voltage.
const neuronPlots = (() => {
  const COLORS = 9;
  // From dark violet to yellow, the same order in light and dark pages.
  const SCALE = [[68, 1, 84], [59, 82, 139], [33, 145, 140], [94, 201, 98], [253, 231, 37]];

  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  const colorOf = (share) => {
    const at = Math.min(0.9999, Math.max(0, share)) * (SCALE.length - 1), i = Math.floor(at), f = at - i;
    return `rgb(${SCALE[i].map((low, k) => Math.round(low + f * (SCALE[i + 1][k] - low))).join(",")})`;
  };

  // A canvas as large as it is shown, on screens of any density.
  const prepared = (canvas) => {
    const ratio = window.devicePixelRatio || 1, width = canvas.clientWidth, height = canvas.clientHeight;
    if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
      canvas.width = Math.round(width * ratio); canvas.height = Math.round(height * ratio);
    }
    const context = canvas.getContext("2d");
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    context.font = "11px system-ui, sans-serif";
    return {context, width, height};
  };

  const ticks = (low, high, most) => {
    const raw = (high - low) / Math.max(1, most), power = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 5, 10].map((one) => one * power).find((one) => one >= raw * 0.999) || 10 * power;
    const found = [];
    for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step && found.length < 20; k += 1) found.push(k * step);
    return found;
  };
  const told = (value) => Number(value.toPrecision(6)).toString();

  // First index whose time is not before a given one.
  const firstFrom = (times, time) => {
    let low = 0, high = times.length;
    while (low < high) { const middle = (low + high) >> 1; if (times[middle] < time) low = middle + 1; else high = middle; }
    return low;
  };

  const frame = (context, width, height, from, to, low, high, unit, area) => {
    const {left, right, top, bottom} = area;
    context.strokeStyle = css("--line"); context.fillStyle = css("--quiet"); context.lineWidth = 1;
    context.textAlign = "right"; context.textBaseline = "middle";
    const y = (value) => bottom - (bottom - top) * (value - low) / (high - low);
    const x = (time) => left + (right - left) * (time - from) / (to - from);
    for (const value of ticks(low, high, Math.min(8, Math.max(3, (bottom - top) / 26)))) {
      const at = Math.round(y(value)) + 0.5;
      context.beginPath(); context.moveTo(left, at); context.lineTo(right, at); context.stroke();
      context.fillText(told(value), left - 6, at);
    }
    context.textAlign = "center"; context.textBaseline = "top";
    for (const time of ticks(from, to, Math.max(2, (right - left) / 75))) {
      const at = Math.round(x(time)) + 0.5;
      context.beginPath(); context.moveTo(at, bottom); context.lineTo(at, bottom + 4); context.stroke();
      if (at < right - 24) context.fillText(told(time), at, bottom + 6);
    }
    context.textAlign = "right"; context.fillText("ms", right, bottom + 6);
    if (unit) { context.textAlign = "left"; context.textBaseline = "bottom"; context.fillText(unit, 4, top - 3); }
    return {x, y};
  };

  // Samples in one column of pixels become one stroke from the lowest to the highest: no spike is lost.
  const line = (context, times, values, start, stop, x, y) => {
    context.beginPath();
    let column = null, low = 0, high = 0, last = 0, begun = false;
    const flush = () => {
      if (column === null) return;
      if (!begun) { context.moveTo(column, y(last)); begun = true; }
      context.lineTo(column, y(high)); context.lineTo(column, y(low)); context.lineTo(column, y(last));
    };
    for (let i = start; i < stop; i += 1) {
      const value = values[i], at = Math.round(2 * x(times[i])) / 2;
      if (value === null || value === undefined) { flush(); column = null; begun = false; continue; }
      if (at !== column) { flush(); column = at; low = high = value; } else { low = Math.min(low, value); high = Math.max(high, value); }
      last = value;
    }
    flush();
    context.stroke();
  };

  const extent = (film, start, stop) => {
    let low = Infinity, high = -Infinity;
    for (const values of film.v) {
      for (let i = start; i < stop; i += 1) {
        const value = values[i];
        if (value === null || value === undefined) continue;
        if (value < low) low = value;
        if (value > high) high = value;
      }
    }
    return [low, high];
  };

  const margin = (low, high) => {
    if (!(low <= high)) return [-1, 1];
    const room = Math.max((high - low) * 0.08, Math.abs(high) * 1e-3, 1e-9);
    return [low - room, high + room];
  };

  const graph = (canvas, film, unit, view) => {
    const {context, width, height} = prepared(canvas);
    if (width < 40 || height < 40) return;
    const area = {left: 52, right: width - 12, top: 20, bottom: height - 24};
    const start = Math.max(0, firstFrom(film.t, view.from) - 1);
    const stop = view.cursor === null ? film.t.length : firstFrom(film.t, view.until + 1e-9);
    let [low, high] = extent(film, start, film.t.length);
    // Of voltages that spike the scale stays: traces would jump with each spike that enters or leaves the window.
    if (unit === "mV" && film.spikes.some((times) => times.length > 1) && low > -100 && high < 60) {
      low = Math.min(low, -80); high = Math.max(high, 45);
    }
    [low, high] = margin(low, high);
    const {x, y} = frame(context, width, height, view.from, view.to, low, high, unit, area);
    context.save();
    context.beginPath(); context.rect(area.left, area.top - 4, area.right - area.left, area.bottom - area.top + 8); context.clip();
    context.lineWidth = 1.6; context.lineJoin = "round";
    film.v.forEach((values, place) => {
      context.strokeStyle = css(`--c${place % COLORS}`);
      if (view.cursor !== null) {
        context.globalAlpha = 0.25; line(context, film.t, values, start, film.t.length, x, y); context.globalAlpha = 1;
      }
      line(context, film.t, values, start, stop, x, y);
    });
    if (view.cursor !== null) cursor(context, x(view.cursor), area);
    context.restore();
  };

  const cursor = (context, at, area) => {
    context.strokeStyle = css("--mark"); context.lineWidth = 1;
    context.beginPath(); context.moveTo(at, area.top - 4); context.lineTo(at, area.bottom); context.stroke();
  };

  // Spikes of a population above, and how many there were in each bin below.
  const raster = (canvas, film, names, view) => {
    const {context, width, height} = prepared(canvas);
    if (width < 40 || height < 40) return;
    const n = names.length, band = Math.min(70, height * 0.26);
    const area = {left: 52, right: width - 12, top: 20, bottom: height - 24};
    const split = area.bottom - band;
    // Bins begin at multiples of their width, so that bars move with the window and keep their heights.
    const bin = (view.to - view.from) / 100, first = Math.floor(view.from / bin), counts = new Float64Array(102);
    const start = firstFrom(film.t, first * bin), stop = firstFrom(film.t, view.until + 1e-9);
    const x = (time) => area.left + (area.right - area.left) * (time - view.from) / (view.to - view.from);
    const row = (split - 8 - area.top) / Math.max(1, n), tall = Math.max(2, Math.min(9, row * 0.8));
    context.strokeStyle = css("--line"); context.strokeRect(area.left + 0.5, area.top + 0.5, area.right - area.left - 1, split - 8 - area.top);
    context.fillStyle = css("--c0");
    for (let i = start; i < stop; i += 1) {
      if (film.t[i] >= view.from) context.fillRect(x(film.t[i]) - 1, area.top + row * (film.u[i] + 0.5) - tall / 2, 2, tall);
      const k = Math.floor(film.t[i] / bin) - first;
      if (k >= 0 && k < counts.length) counts[k] += 1;
    }
    const rates = counts.map((count) => 1000 * count / bin / Math.max(1, n));
    const most = Math.max(10, ...rates);
    const axes = frame(context, width, height, view.from, view.to, 0, most * 1.05, "", {...area, top: split});
    context.save();
    context.beginPath(); context.rect(area.left, split - 4, area.right - area.left, area.bottom - split + 8); context.clip();
    context.fillStyle = css("--c1"); context.globalAlpha = 0.75;
    rates.forEach((rate, k) => {
      const at = axes.x((first + k) * bin), wide = axes.x((first + k + 1) * bin) - at;
      if (rate > 0) context.fillRect(at, axes.y(rate), Math.max(1, wide - 0.5), area.bottom - axes.y(rate));
    });
    context.restore();
    context.globalAlpha = 1;
    context.fillStyle = css("--quiet"); context.textAlign = "left"; context.textBaseline = "bottom";
    context.fillText(`${n} cell${n === 1 ? "" : "s"}; below: spikes of a cell in a second`, 4, area.top - 3);
    if (view.cursor !== null) cursor(context, x(view.cursor), {...area});
  };

  // Compartments as strokes whose width is their diameter; a soma is drawn as a disc.
  const cell = (canvas, drawing, values) => {
    const {context, width, height} = prepared(canvas);
    if (width < 40 || height < 40) return;
    const {low, high, segments, unit} = drawing;
    let left = Infinity, right = -Infinity, top = Infinity, bottom = -Infinity;
    for (const [x0, y0, x1, y1, wide] of segments) {
      left = Math.min(left, x0 - wide / 2, x1 - wide / 2); right = Math.max(right, x0 + wide / 2, x1 + wide / 2);
      top = Math.min(top, y0 - wide / 2, y1 - wide / 2); bottom = Math.max(bottom, y0 + wide / 2, y1 + wide / 2);
    }
    const room = 22, below = 44;
    const scale = Math.min((width - 2 * room) / Math.max(1e-9, right - left), (height - room - below) / Math.max(1e-9, bottom - top), 6);
    const x = (value) => width / 2 + scale * (value - (left + right) / 2);
    const y = (value) => room + (height - room - below) / 2 + scale * (value - (top + bottom) / 2);
    context.lineCap = "round";
    segments.forEach(([x0, y0, x1, y1, wide], place) => {
      const value = values ? values[place] : null;
      const color = value === null || value === undefined ? css("--line") : colorOf((value - low) / (high - low));
      context.strokeStyle = context.fillStyle = color;
      if (x0 === x1 && y0 === y1) {
        context.beginPath(); context.arc(x(x0), y(y0), Math.max(5, scale * wide / 2), 0, 7); context.fill();
      } else {
        context.lineWidth = Math.max(2.5, Math.min(scale * wide, 40)); context.lineCap = context.lineWidth > 8 ? "butt" : "round";
        context.beginPath(); context.moveTo(x(x0), y(y0)); context.lineTo(x(x1), y(y1)); context.stroke();
      }
    });
    const wide = Math.min(220, width - 120), begin = (width - wide) / 2;
    for (let i = 0; i < wide; i += 1) { context.fillStyle = colorOf(i / wide); context.fillRect(begin + i, height - 20, 1.5, 8); }
    context.fillStyle = css("--quiet"); context.textBaseline = "middle";
    context.textAlign = "right"; context.fillText(told(low), begin - 6, height - 16);
    context.textAlign = "left"; context.fillText(`${told(high)} ${unit}`, begin + wide + 6, height - 16);
  };

  return {graph, raster, cell, firstFrom, COLORS};
})();
