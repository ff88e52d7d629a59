"use strict";
/* A map of points on a canvas. Dots are written pixel by pixel, which takes less time than to have them drawn one by one;
   pictures, labels, lines and rings are drawn over them. */
function pointMap(canvas, points, look) {
  const context = canvas.getContext("2d");
  const { n, images, axes, coordinates } = points, total = n * images;
  const order = shuffled(total);
  const view = { x: 0, y: 0, scale: 1 }, chosenAxes = [0, Math.min(1, axes - 1)];
  const shown = new Uint8Array(total).fill(1), style = new Uint8Array(total), faint = new Uint8Array(total);
  let X = null, Y = null, fitted = 1, waiting = false, pixels = null, laid = { key: "", list: [] }, changes = 0, untouched = true;
  const map = {
    view, shown, style, faint, styles: [[0, 114, 178, 0]], paper: [247, 247, 245], ink: "#000", quiet: "#888", mark: "#c00",
    hover: -1, chosen: -1, from: -1, along: null, hits: [], lines: images > 1, pictures: "auto", labels: true, cross: false,
    drawn: 0, drawnPictures: 0, drawnLabels: 0, frame: 0,
  };

  /* The same order at every opening: what is drawn on top, and which pictures find room, must not depend on classes. */
  function shuffled(size) {
    const found = Uint32Array.from({ length: size }, (_, place) => place);
    let seed = 12345;
    for (let place = size - 1; place > 0; place--) {
      seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
      const other = Math.floor((seed / 4294967296) * (place + 1)), kept = found[place];
      found[place] = found[other];
      found[other] = kept;
    }
    return found;
  }

  /* ---- where things are ---- */
  map.setAxes = (first, second) => {
    chosenAxes[0] = first; chosenAxes[1] = second;
    X = coordinates.subarray(first * total, (first + 1) * total);
    Y = axes === 1 ? spread() : coordinates.subarray(second * total, (second + 1) * total);
    changes++;
    map.fit();
  };
  /* One coordinate alone is shown along a band, in which the height means nothing. */
  function spread() {
    const found = new Float32Array(total);
    for (let i = 0; i < total; i++) found[i] = ((order[i] + 0.5) / total - 0.5) * 0.24;
    return found;
  }
  const width = () => canvas.clientWidth, height = () => canvas.clientHeight;
  map.screen = (x, y) => [(x - view.x) * view.scale + width() / 2, height() / 2 - (y - view.y) * view.scale];
  map.place = (left, top) => [(left - width() / 2) / view.scale + view.x, (height() / 2 - top) / view.scale + view.y];
  map.at = (i) => [X[i], Y[i]];
  map.fit = (only = null) => {
    let left = Infinity, right = -Infinity, low = Infinity, high = -Infinity, count = 0;
    for (let i = 0; i < total; i++) {
      if (only ? !only.has(Math.floor(i / images)) : !shown[i]) continue;
      left = Math.min(left, X[i]); right = Math.max(right, X[i]);
      low = Math.min(low, Y[i]); high = Math.max(high, Y[i]);
      count++;
    }
    if (!count) { left = low = -1; right = high = 1; }
    view.x = (left + right) / 2; view.y = (low + high) / 2;
    const room = Math.min(60, width() * 0.08);
    const scale = Math.min((width() - 2 * room) / (right - left || 1e-9), (height() - 2 * room) / (high - low || 1e-9));
    const whole = Math.min(width(), height()) / 2;
    view.scale = Math.max(1, Math.min(scale, right - left || high - low ? (only ? 12 * whole : 1e6) : whole));
    if (!only) fitted = view.scale;
    untouched = !only;
    map.draw();
  };
  /* Drawn at once: the browser would stretch what it has. */
  map.resize = () => { if (untouched) map.fit(); paint(); };
  map.zoom = (factor, left = width() / 2, top = height() / 2) => {
    untouched = false;
    const before = map.place(left, top);
    view.scale = Math.min(fitted * 2000, Math.max(fitted / 4, view.scale * factor));
    const after = map.place(left, top);
    view.x += before[0] - after[0]; view.y += before[1] - after[1];
    map.draw();
  };
  map.pan = (dx, dy) => { untouched = false; view.x -= dx / view.scale; view.y += dy / view.scale; map.draw(); };
  map.center = (i) => {
    const [left, top] = map.screen(X[i], Y[i]);
    if (left > 40 && top > 40 && left < width() - 40 && top < height() - 40) return map.draw();
    view.x = X[i]; view.y = Y[i];
    untouched = false;
    map.draw();
  };
  /* The image of a point under the pointer, or the nearest one within so many pixels. */
  map.nearest = (left, top, limit) => {
    for (let k = laid.list.length - 1; k >= 0 && map.drawnPictures; k--) {
      const i = laid.list[k], [x, y] = map.screen(X[i], Y[i]), [w, h] = pictureSize();
      if (Math.abs(left - x) <= w / 2 && Math.abs(top - y) <= h / 2) return i;
    }
    const [x, y] = map.place(left, top);
    let best = -1, least = (limit / view.scale) ** 2;
    for (let i = 0; i < total; i++) {
      if (!shown[i]) continue;
      const dx = X[i] - x, dy = Y[i] - y, distance = dx * dx + dy * dy;
      if (distance < least) { least = distance; best = i; }
    }
    return best;
  };
  map.changed = () => { changes++; map.draw(); };

  /* ---- drawing ---- */
  map.draw = () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => { waiting = false; paint(); });
  };
  const ratio = () => Math.min(2, window.devicePixelRatio || 1);
  const radius = () => {
    const room = Math.sqrt((width() * height()) / Math.max(total, 1)) * 0.14;
    return Math.min(9, Math.min(6, Math.max(1.7, room)) * Math.min(3, Math.max(0.8, (view.scale / fitted) ** 0.3)));
  };

  function masks(size) {
    const half = Math.ceil(size), side = 2 * half + 1;
    return [0, 1, 2].map((shape) => {
      const alpha = new Uint8Array(side * side);
      for (let y = -half; y <= half; y++) for (let x = -half; x <= half; x++) {
        const away = shape === 0 ? Math.hypot(x, y) : shape === 1 ? Math.max(Math.abs(x), Math.abs(y)) * 1.13 : (Math.abs(x) + Math.abs(y)) * 0.8;
        alpha[(y + half) * side + x + half] = 230 * Math.min(1, Math.max(0, size + 0.5 - away));
      }
      return { alpha, half, side };
    });
  }
  /* Everything in small whole numbers and flat arrays: this is where the time goes. */
  function dots() {
    const scale = ratio(), w = canvas.width, h = canvas.height, [r0, g0, b0] = map.paper;
    if (!pixels || pixels.width !== w || pixels.height !== h) pixels = context.createImageData(w, h);
    const buffer = new Uint32Array(pixels.data.buffer);
    buffer.fill((255 << 24) | (b0 << 16) | (g0 << 8) | r0);
    const stamps = masks(radius() * scale), { half, side } = stamps[0], alphas = stamps.map((stamp) => stamp.alpha);
    const colors = Int32Array.from(map.styles.flat()), unit = view.scale * scale, { proportions } = points;
    const left = (width() / 2) * scale - view.x * unit, top = (height() / 2) * scale + view.y * unit;
    const some = faint.includes(1);
    map.drawn = 0;
    for (let pass = some ? 0 : 1; pass < 2; pass++) for (let k = 0; k < total; k++) {
      const i = order[k];
      if (shown[i] === 0 || faint[i] === pass) continue;
      const column = Math.round(X[i] * unit + left), row = Math.round(top - Y[i] * unit);
      if (column < -half || row < -half || column >= w + half || row >= h + half) continue;
      map.drawn++;
      const from = 4 * style[i], red = colors[from], green = colors[from + 1], blue = colors[from + 2], alpha = alphas[colors[from + 3]];
      const weight = (pass === 0 ? 40 : 256) * (proportions ? Math.min(1, 0.2 + proportions[i]) : 1) | 0;
      const first = Math.max(0, column - half), last = Math.min(w - 1, column + half), end = Math.min(h - 1, row + half);
      for (let y = Math.max(0, row - half); y <= end; y++) {
        const stamp = (y - row + half) * side + half - column, line = y * w;
        for (let x = first; x <= last; x++) {
          const a = (alpha[stamp + x] * weight) >> 8;
          if (a === 0) continue;
          const old = buffer[line + x], r = old & 255, g = (old >> 8) & 255, b = (old >> 16) & 255;
          buffer[line + x] = -16777216 | ((b + (((blue - b) * a) >> 8)) << 16) | ((g + (((green - g) * a) >> 8)) << 8) | (r + (((red - r) * a) >> 8));
        }
      }
    }
    context.putImageData(pixels, 0, 0);
    context.setTransform(scale, 0, 0, scale, 0, 0);
  }
  function between() {
    if (!map.lines || images < 2) return;
    context.lineWidth = 1;
    context.strokeStyle = map.quiet;
    context.globalAlpha = 0.4;
    context.beginPath();
    for (let point = 0; point < n; point++) joined(point);
    context.stroke();
    context.globalAlpha = 1;
  }
  /* From the image with most of a point to each other one that has a twentieth of it. */
  function joined(point) {
    let best = point * images;
    for (let i = best; i < (point + 1) * images; i++) if (points.proportions[i] > points.proportions[best]) best = i;
    if (!shown[best] || (faint[best] && point !== Math.floor(map.chosen / images))) return;
    const from = map.screen(X[best], Y[best]);
    for (let i = point * images; i < (point + 1) * images; i++) {
      if (i === best || points.proportions[i] < 0.05) continue;
      context.moveTo(...from);
      context.lineTo(...map.screen(X[i], Y[i]));
    }
  }
  function pictureSize() {
    const { width: w, height: h } = look.sheet, side = Math.min(96, 26 * Math.min(16, Math.max(1, view.scale / fitted)) ** 0.5);
    return w >= h ? [side, (side * h) / w] : [(side * w) / h, side];
  }
  /* In random order; none if there are more than a limit. */
  function visible(room, limit) {
    const [left, high] = map.place(-room, -room), [right, low] = map.place(width() + room, height() + room), found = [];
    for (let k = 0; k < total; k++) {
      const i = order[k];
      if (shown[i] && X[i] >= left && X[i] <= right && Y[i] >= low && Y[i] <= high && found.push(i) > limit) return null;
    }
    return found;
  }
  /* In random order, those whose box overlaps no box that is there. Two boxes in one cell of their size would overlap, so
     that each cell holds one at most and only nine have to be looked at. All points take part, not only those in view:
     which pictures are shown does not change while the map is moved. */
  function layOut(w, h) {
    const key = [view.scale, w, changes, chosenAxes].join();
    if (laid.key === key) return laid.list;
    const cells = new Map(), list = [];
    for (let k = 0; k < total; k++) {
      const i = order[k];
      if (!shown[i] || faint[i] || (points.proportions && points.proportions[i] < 0.05)) continue;
      const x = (X[i] * view.scale) / w, y = (Y[i] * view.scale) / h, column = Math.floor(x), row = Math.floor(y);
      let free = true;
      for (let a = column - 1; free && a <= column + 1; a++) for (let b = row - 1; b <= row + 1; b++) {
        const other = cells.get(a * 4194304 + b);
        if (other !== undefined && Math.abs((X[other] * view.scale) / w - x) < 1 && Math.abs((Y[other] * view.scale) / h - y) < 1) { free = false; break; }
      }
      if (!free) continue;
      cells.set(column * 4194304 + row, i);
      list.push(i);
    }
    laid = { key, list };
    return list;
  }
  function pictures() {
    map.drawnPictures = 0;
    if (!look.sheet || map.pictures === "never" || !look.image.complete) return;
    const [w, h] = pictureSize();
    if (map.pictures === "auto" && !visible(w, (4 * width() * height()) / (w * h))) return;
    for (const i of layOut(w + 4, h + 4)) {
      const [left, top] = map.screen(X[i], Y[i]);
      if (left < -w || top < -h || left > width() + w || top > height() + h) continue;
      picture(i, left, top, w, h);
      map.drawnPictures++;
    }
  }
  function picture(i, left, top, w, h) {
    const { columns, width: from, height: tall } = look.sheet, number = Math.floor(i / images);
    context.imageSmoothingEnabled = w < 2 * from;
    context.drawImage(look.image, (number % columns) * from, Math.floor(number / columns) * tall, from, tall, left - w / 2, top - h / 2, w, h);
    const [red, green, blue] = map.styles[style[i]];
    context.lineWidth = 2;
    context.strokeStyle = "rgb(" + red + "," + green + "," + blue + ")";
    context.strokeRect(left - w / 2 - 1, top - h / 2 - 1, w + 2, h + 2);
  }
  function labels() {
    map.drawnLabels = 0;
    if (!look.labels || !map.labels || map.drawnPictures || look.sheet) return;
    const few = map.hits.length && map.hits.length < 60 ? map.hits.map((point) => point * images).filter((i) => shown[i]) : visible(0, 3000);
    if (!few) return;
    const candidates = few.filter((i) => !faint[i] && !(points.proportions && points.proportions[i] < 0.05));
    const boxes = [], away = radius() + 3;
    context.font = "12px system-ui, sans-serif";
    context.textBaseline = "middle";
    context.lineWidth = 3;
    context.lineJoin = "round";
    context.strokeStyle = "rgb(" + map.paper + ")";
    context.fillStyle = map.ink;
    for (const i of candidates.slice(0, 600)) {
      const text = short(look.labels[Math.floor(i / images)], 28);
      if (!text) continue;
      const [x, y] = map.screen(X[i], Y[i]), box = [x + away, y - 8, x + away + context.measureText(text).width + 6, y + 8];
      if (boxes.some((other) => box[0] < other[2] && other[0] < box[2] && box[1] < other[3] && other[1] < box[3])) continue;
      boxes.push(box);
      context.strokeText(text, box[0], y);
      context.fillText(text, box[0], y);
    }
    map.drawnLabels = boxes.length;
  }
  const short = (text, most) => (text.length > most ? text.slice(0, most - 1) + "…" : text);
  map.short = short;
  function ring(i, color, more = 3) {
    const [x, y] = map.screen(X[i], Y[i]);
    context.beginPath();
    if (map.drawnPictures && look.sheet) {
      const [w, h] = pictureSize();
      picture(i, x, y, w, h);
      context.rect(x - w / 2 - 3, y - h / 2 - 3, w + 6, h + 6);
    } else context.arc(x, y, radius() + more, 0, 7);
    context.lineWidth = 2.5;
    context.strokeStyle = color;
    context.stroke();
  }
  function marks() {
    if (map.hits.length <= 300 && !map.drawnPictures) for (const point of map.hits) for (let i = point * images; i < (point + 1) * images; i++) if (shown[i]) ring(i, map.mark, 2);
    if (map.from >= 0 && map.chosen >= 0) {
      context.beginPath();
      context.moveTo(...map.screen(X[map.from], Y[map.from]));
      context.lineTo(...map.screen(X[map.chosen], Y[map.chosen]));
      for (const [line, color] of [[5, "rgb(" + map.paper + ")"], [2, map.ink]]) {
        context.lineWidth = line;
        context.strokeStyle = color;
        context.stroke();
      }
    }
    for (const [i, color] of [[map.from, map.ink], [map.chosen, map.ink], [map.hover, map.mark]]) {
      if (i < 0) continue;
      if (images > 1) {
        context.lineWidth = 2;
        context.strokeStyle = color;
        context.beginPath();
        joined(Math.floor(i / images));
        context.stroke();
        for (let other = Math.floor(i / images) * images, k = 0; k < images; k++) if (points.proportions[other + k] >= 0.05) ring(other + k, color);
      } else ring(i, color);
    }
    if (map.along !== null && map.from >= 0 && map.chosen >= 0) {
      const a = map.screen(X[map.from], Y[map.from]), b = map.screen(X[map.chosen], Y[map.chosen]), t = map.along;
      context.beginPath();
      context.arc(a[0] + t * (b[0] - a[0]), a[1] + t * (b[1] - a[1]), 6, 0, 7);
      context.fillStyle = map.mark;
      context.fill();
    }
    if (map.cross) {
      const x = width() / 2, y = height() / 2;
      context.beginPath();
      context.moveTo(x - 12, y); context.lineTo(x + 12, y); context.moveTo(x, y - 12); context.lineTo(x, y + 12);
      context.lineWidth = 1.5;
      context.strokeStyle = map.ink;
      context.stroke();
    }
  }
  function paint() {
    const w = Math.round(width() * ratio()), h = Math.round(height() * ratio());
    if (!w || !h) return;
    if (canvas.width !== w || canvas.height !== h) { canvas.width = w; canvas.height = h; }
    const began = performance.now();
    dots();
    between();
    pictures();
    labels();
    marks();
    map.frame = performance.now() - began;
    look.painted();
  }
  return map;
}
