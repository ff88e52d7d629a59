"use strict";
/* Stick figures on a canvas, side by side, seen by one camera that a reader turns. */
function figureView(canvas, look) {
  const context = canvas.getContext("2d");
  const START = { yaw: 0.7, pitch: 0.16, zoom: 1 };
  const view = { ...START, follow: true, shown: [], frames: [], drawn: 0 };
  const width = () => canvas.clientWidth, height = () => canvas.clientHeight;
  const ratio = () => Math.min(2, window.devicePixelRatio || 1);
  let waiting = false;

  view.setStart = (yaw) => { START.yaw = view.yaw = yaw; };
  view.reset = () => { Object.assign(view, START); view.draw(); };
  view.turn = (dx, dy) => {
    view.yaw -= dx * 0.01;
    view.pitch = Math.max(-0.2, Math.min(1.5, view.pitch + dy * 0.008));
    view.draw();
  };
  view.closer = (factor) => { view.zoom = Math.max(0.25, Math.min(8, view.zoom * factor)); view.draw(); };
  view.draw = () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => { waiting = false; view.paint(); });
  };

  /* ---- where a figure is ---- */
  function place(motion, frame, point) {
    const at = 3 * (frame * motion.points + point), { places, origin, unit } = motion;
    if (places[at] === -32768) return null;
    return [origin[0] + unit * places[at], origin[1] + unit * places[at + 1], origin[2] + unit * places[at + 2]];
  }
  view.place = place;
  function middle(motion, frame) {
    const found = [0, 0];
    let count = 0;
    for (let point = 0; point < motion.points; point++) {
      const at = place(motion, frame, point);
      if (at) { found[0] += at[0]; found[1] += at[2]; count++; }
    }
    return count ? [found[0] / count, found[1] / count] : [motion.origin[0], motion.origin[2]];
  }
  /* Middles of all frames, smoothed over a second, so that the camera does not shake with each step. */
  view.prepare = (motion) => {
    const raw = Array.from({ length: motion.frames }, (_, frame) => middle(motion, frame)), reach = Math.round(0.5 / motion.time);
    motion.path = raw;
    motion.centres = raw.map((_, frame) => {
      const near = Math.min(reach, frame, motion.frames - 1 - frame), found = [0, 0];
      for (let k = frame - near; k <= frame + near; k++) { found[0] += raw[k][0]; found[1] += raw[k][1]; }
      return [found[0] / (2 * near + 1), found[1] / (2 * near + 1)];
    });
    /* How far points are from the middle, but for the few frames in which an arm is flung out. */
    const reaches = raw.map((_, frame) => {
      let most = 0;
      for (let point = 0; point < motion.points; point++) { const at = place(motion, frame, point); if (at) most = Math.max(most, Math.hypot(at[0] - motion.centres[frame][0], at[2] - motion.centres[frame][1])); }
      return most;
    }).sort((a, b) => a - b);
    motion.reach = reaches[Math.floor(0.95 * (reaches.length - 1))];
    const xs = raw.map((at) => at[0]), zs = raw.map((at) => at[1]);
    const least = (values) => values.reduce((a, b) => Math.min(a, b)), most = (values) => values.reduce((a, b) => Math.max(a, b));
    motion.box = { x: (least(xs) + most(xs)) / 2, z: (least(zs) + most(zs)) / 2, reach: Math.hypot(most(xs) - least(xs), most(zs) - least(zs)) / 2 };
  };
  /* The camera looks at the middle of the body; the nearer the larger. */
  function camera(motion, frame, column, columns) {
    const w = width() / columns, top = 74, h = height() - top - 14;
    const [x, z] = view.follow ? motion.centres[frame] : [motion.box.x, motion.box.z];
    const room = view.follow ? 0 : motion.box.reach;
    /* All figures that are shown have one scale: the widest of them has to fit. */
    const wide = view.shown.reduce((most, other) => Math.max(most, other.reach / other.size), 0.2);
    const scale = view.zoom * Math.min(h / (motion.size * 1.22), w / (2.3 * wide * motion.size + 2 * room));
    const target = [x, motion.ground + motion.size * 0.5, z], away = 3.4 * (motion.size + room);
    const c = Math.cos(view.yaw), s = Math.sin(view.yaw), cp = Math.cos(view.pitch), sp = Math.sin(view.pitch);
    return {
      target, scale,
      project: ([px, py, pz]) => {
        const dx = px - target[0], dy = py - target[1], dz = pz - target[2];
        const right = c * dx - s * dz, ahead = s * dx + c * dz;
        const up = cp * dy - sp * ahead, depth = sp * dy + cp * ahead;
        const near = away / Math.max(0.1 * away, away - depth);
        return [column * w + w / 2 + right * scale * near, top + h / 2 - up * scale * near, depth, near];
      },
    };
  }

  /* ---- drawing ---- */
  function ground(motion, eye) {
    const step = motion.size / 3, reach = 6, i0 = Math.round(eye.target[0] / step), k0 = Math.round(eye.target[2] / step);
    context.strokeStyle = look.color("--quiet");
    context.lineWidth = 1;
    const part = (x1, z1, x2, z2, far) => {
      const a = eye.project([x1, motion.ground, z1]), b = eye.project([x2, motion.ground, z2]);
      context.globalAlpha = 0.34 * Math.max(0, 1 - far / (reach + 0.5)) ** 1.3;
      context.beginPath();
      context.moveTo(a[0], a[1]);
      context.lineTo(b[0], b[1]);
      context.stroke();
    };
    for (let i = -reach; i <= reach; i++) for (let k = -reach; k < reach; k++) {
      const far = Math.hypot(i, k + 0.5);
      part((i0 + i) * step, (k0 + k) * step, (i0 + i) * step, (k0 + k + 1) * step, far);
      part((i0 + k) * step, (k0 + i) * step, (i0 + k + 1) * step, (k0 + i) * step, far);
    }
    context.globalAlpha = 1;
  }
  function track(motion, frame, eye) {
    context.lineWidth = 2;
    const run = (from, to, color, dash) => {
      context.strokeStyle = color;
      context.setLineDash(dash);
      context.beginPath();
      for (let k = Math.max(0, from - 1); k < to; k++) {
        const [x, z] = motion.path[k], at = eye.project([x, motion.ground, z]);
        if (k === Math.max(0, from - 1)) context.moveTo(at[0], at[1]); else context.lineTo(at[0], at[1]);
      }
      context.stroke();
    };
    context.globalAlpha = 0.55;
    run(0, motion.frames, look.motionColor(motion.number), []);
    context.globalAlpha = 0.9;
    for (const [start, stop] of motion.gaps) run(start, stop, look.color("--mark"), [3, 4]);
    context.setLineDash([]);
    context.globalAlpha = 1;
  }
  function lines(motion, frame, eye, within) {
    const at = Array.from({ length: motion.points }, (_, point) => place(motion, frame, point));
    const seen = at.map((point) => point && eye.project(point)), list = [], base = Math.max(2.2, eye.scale * motion.size * 0.017);
    for (let bone = 0; bone < motion.sides.length; bone++) {
      const a = motion.bones[2 * bone], b = motion.bones[2 * bone + 1];
      if (at[a] && at[b]) list.push([a, b, motion.sides[bone], (seen[a][2] + seen[b][2]) / 2]);
    }
    list.sort((one, other) => one[3] - other[3]);
    const isHead = (a, b) => motion.head && motion.head[0] === a && motion.head[1] === b;
    context.lineCap = "round";
    context.globalAlpha = 0.13;
    context.strokeStyle = look.color("--ink");
    context.lineWidth = base * 1.3;
    context.beginPath();
    for (const [a, b] of list) {
      const from = eye.project([at[a][0], motion.ground, at[a][2]]), to = eye.project([at[b][0], motion.ground, at[b][2]]);
      context.moveTo(from[0], from[1]);
      context.lineTo(to[0], to[1]);
    }
    context.stroke();
    if (within) {
      context.globalAlpha = 0.3;
      context.strokeStyle = look.color("--mark");
      context.lineWidth = base * 3.4;
      context.beginPath();
      for (const [a, b] of list) if (!isHead(a, b)) { context.moveTo(seen[a][0], seen[a][1]); context.lineTo(seen[b][0], seen[b][1]); }
      context.stroke();
    }
    context.globalAlpha = 1;
    const colors = [look.color("--ink"), look.color("--c0"), look.color("--c1")], paper = look.color("--paper");
    for (const [a, b, side] of list) {
      if (isHead(a, b)) { head(seen[a], seen[b], paper, colors[0], base); continue; }
      const thick = base * (seen[a][3] + seen[b][3]) / 2;
      context.beginPath();
      context.moveTo(seen[a][0], seen[a][1]);
      context.lineTo(seen[b][0], seen[b][1]);
      context.strokeStyle = paper;
      context.lineWidth = thick + 2.5;
      context.stroke();
      context.strokeStyle = colors[side];
      context.lineWidth = thick;
      context.stroke();
    }
    /* Markers have no bones: they are dots. */
    if (!motion.sides.length) for (const point of seen) {
      if (!point) continue;
      context.beginPath();
      context.arc(point[0], point[1], base * 0.8 * point[3], 0, 7);
      context.fillStyle = look.motionColor(motion.number);
      context.fill();
    }
    return motion.sides.length ? list.length : seen.filter(Boolean).length;
  }
  function head(from, to, paper, ink, base) {
    context.beginPath();
    context.arc((from[0] + to[0]) / 2, (from[1] + to[1]) / 2, Math.max(4, Math.hypot(to[0] - from[0], to[1] - from[1]) / 2), 0, 7);
    context.fillStyle = paper;
    context.fill();
    context.lineWidth = base * 0.8;
    context.strokeStyle = ink;
    context.stroke();
  }
  view.paint = () => {
    const scale = ratio(), w = Math.round(width() * scale), h = Math.round(height() * scale);
    if (!w || !h) return;
    if (canvas.width !== w || canvas.height !== h) { canvas.width = w; canvas.height = h; }
    context.setTransform(scale, 0, 0, scale, 0, 0);
    context.clearRect(0, 0, width(), height());
    view.drawn = 0;
    view.shown.forEach((motion, column) => {
      const frame = view.frames[column], eye = camera(motion, frame, column, view.shown.length), across = width() / view.shown.length;
      context.save();
      context.beginPath();
      context.rect(column * across, 0, across, height());
      context.clip();
      ground(motion, eye);
      track(motion, frame, eye);
      view.drawn += lines(motion, frame, eye, motion.gaps.some(([start, stop]) => frame >= start && frame < stop));
      context.restore();
    });
    look.painted();
  };
  return view;
}
