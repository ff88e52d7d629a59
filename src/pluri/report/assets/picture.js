(() => {
  const root = document.documentElement, frame = document.getElementById("frame"), slider = document.getElementById("slider");
  function show(share, keep) {
    const at = Math.min(100, Math.max(0, share));
    frame.style.setProperty("--at", at + "%");
    slider.value = at;
    slider.setAttribute("aria-valuetext", Math.round(at) + " percent before");
    root.dataset.at = Math.round(at * 10) / 10;
    if (keep) history.replaceState(null, "", "#at=" + root.dataset.at);
  }
  function read() {
    const found = /^#at=([0-9.]+)$/.exec(location.hash);
    show(found ? Number(found[1]) || 0 : 50, false);
  }
  const share = (event) => { const box = frame.getBoundingClientRect(); return (100 * (event.clientX - box.left)) / box.width; };
  let held = false;
  frame.addEventListener("pointerdown", (event) => { held = true; try { frame.setPointerCapture(event.pointerId); } catch (error) { /* made by a program */ } show(share(event), true); });
  frame.addEventListener("pointermove", (event) => { if (held) show(share(event), true); });
  for (const name of ["pointerup", "pointercancel"]) frame.addEventListener(name, () => { held = false; });
  slider.addEventListener("input", () => show(Number(slider.value), true));
  document.addEventListener("keydown", (event) => {
    if (event.target === slider || event.ctrlKey || event.metaKey || event.altKey) return;
    const step = { ArrowLeft: -2, ArrowRight: 2 }[event.key];
    if (step) { show(Number(slider.value) + step, true); event.preventDefault(); }
  });
  addEventListener("hashchange", read);
  read();
  root.dataset.ready = "true";
})();
