/* Paths of motions in a map of two coordinates. */
function pathView(canvas, motions, look) {
  const front = canvas.getContext("2d"), layer = document.createElement("canvas"), back = layer.getContext("2d");
  const view = { shown: [], frames: [], byRegime: false, hover: null };
  const known = motions.filter((motion) => motion.at);
  const width = () => canvas.clientWidth, height = () => canvas.clientHeight;
  const ratio = () => Math.min(2, window.devicePixelRatio || 1);
  let context = front, drawnAs = "", waiting = false, box = [-1, -1, 1, 1];
  for (const motion of known) for (let k = 0; k < motion.at.length; k++) {
    const axis = k % 2;
    if (motion === known[0] && k < 2) { box[axis] = box[axis + 2] = motion.at[k]; }
    box[axis] = Math.min(box[axis], motion.at[k]);
    box[axis + 2] = Math.max(box[axis + 2], motion.at[k]);
  }
  const screen = (x, y) => {
    const room = 34, scale = Math.min((width() - 2 * room) / (box[2] - box[0] || 1e-9), (height() - 2 * room) / (box[3] - box[1] || 1e-9), 1e6);
    return [width() / 2 + (x - (box[0] + box[2]) / 2) * scale, height() / 2 - (y - (box[1] + box[3]) / 2) * scale];
  };
  view.screen = (motion, frame) => screen(motion.at[2 * frame], motion.at[2 * frame + 1]);
  view.draw = () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => { waiting = false; view.paint(); });
  };
  /* The shown motion and its frame nearest to a place; of frames that lie on one another, that nearest in time. */
  view.nearest = (left, top, limit, frames) => {
    let best = null, least = Infinity;
    view.shown.forEach((motion, column) => {
      if (!motion.at) return;
      for (let frame = 0; frame < motion.frames; frame++) {
        const [x, y] = view.screen(motion, frame), away = Math.hypot(x - left, y - top);
        if (away > limit) continue;
        const cost = away + 0.02 * Math.abs(frame - frames[column]);
        if (cost < least) { least = cost; best = { motion, frame }; }
      }
    });
    return best;
  };
  function line(motion, from, to) {
    context.beginPath();
    for (let frame = Math.max(0, from); frame < Math.min(motion.frames, to); frame++) {
      const [x, y] = view.screen(motion, frame);
      if (frame === Math.max(0, from)) context.moveTo(x, y); else context.lineTo(x, y);
    }
    context.stroke();
  }
  function path(motion, strong) {
    context.globalAlpha = strong ? 0.8 : 0.2;
    context.lineWidth = strong ? 2 : 1.2;
    context.lineJoin = context.lineCap = "round";
    if (view.byRegime && motion.codes && strong) {
      for (const [start, stop, code] of motion.runs) { context.strokeStyle = look.regimeColor(code); line(motion, start, stop + 1); }
    } else { context.strokeStyle = strong ? look.motionColor(motion.number) : look.color("--quiet"); line(motion, 0, motion.frames); }
    if (!strong) { context.globalAlpha = 1; return; }
    context.globalAlpha = 1;
    context.lineCap = "butt";
    for (const [start, stop] of motion.gaps) {
      context.lineWidth = 5;
      context.strokeStyle = look.color("--paper");
      line(motion, start - 1, stop + 1);
      context.lineWidth = 2.5;
      context.setLineDash([5, 4]);
      context.strokeStyle = look.color("--mark");
      line(motion, start - 1, stop + 1);
      context.setLineDash([]);
    }
    for (const [frame] of motion.handOvers) {
      const [x, y] = view.screen(motion, frame);
      context.beginPath();
      context.moveTo(x, y - 8); context.lineTo(x + 8, y); context.lineTo(x, y + 8); context.lineTo(x - 8, y);
      context.closePath();
      context.fillStyle = look.color("--card");
      context.fill();
      context.lineWidth = 2.5;
      context.strokeStyle = look.color("--ink");
      context.stroke();
    }
  }
  function now(motion, frame) {
    context.lineCap = "round";
    context.strokeStyle = look.motionColor(motion.number);
    const back = Math.round(0.5 / motion.time);
    for (let k = Math.max(1, frame - back); k <= frame; k++) {
      context.globalAlpha = 0.15 + 0.85 * (1 - (frame - k) / (back + 1));
      context.lineWidth = 5;
      line(motion, k - 1, k + 1);
    }
    context.globalAlpha = 1;
    const [x, y] = view.screen(motion, frame);
    context.beginPath();
    context.arc(x, y, 8, 0, 7);
    context.fillStyle = look.motionColor(motion.number);
    context.fill();
    context.lineWidth = 2.5;
    context.strokeStyle = look.color("--paper");
    context.stroke();
    context.beginPath();
    context.arc(x, y, 10, 0, 7);
    context.lineWidth = 1.5;
    context.strokeStyle = look.color("--ink");
    context.stroke();
  }
  view.paint = () => {
    const scale = ratio(), w = Math.round(width() * scale), h = Math.round(height() * scale);
    if (!w || !h) return;
    if (canvas.width !== w || canvas.height !== h) { canvas.width = w; canvas.height = h; }
    /* Whole paths are drawn once, and only the present over them at each frame. */
    const as = [w, h, view.byRegime, view.shown.map((motion) => motion.number), look.color("--paper")].join();
    if (as !== drawnAs) {
      drawnAs = as;
      layer.width = w; layer.height = h;
      context = back;
      context.setTransform(scale, 0, 0, scale, 0, 0);
      for (const motion of known) if (!view.shown.includes(motion)) path(motion, false);
      for (const motion of view.shown) if (motion.at) path(motion, true);
      context = front;
    }
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, w, h);
    context.drawImage(layer, 0, 0);
    context.setTransform(scale, 0, 0, scale, 0, 0);
    view.shown.forEach((motion, column) => { if (motion.at) now(motion, view.frames[column]); });
    if (view.hover) {
      const [x, y] = view.screen(view.hover.motion, view.hover.frame);
      context.beginPath();
      context.arc(x, y, 6, 0, 7);
      context.lineWidth = 2;
      context.strokeStyle = look.color("--mark");
      context.stroke();
    }
  };
  return view;
}
