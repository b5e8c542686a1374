// Before anything is drawn: the theme that was chosen, else the system's.
(() => {
  let chosen = null;
  try { chosen = localStorage.getItem("grammask-theme"); } catch { /* storage may be off */ }
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  document.documentElement.dataset.theme = chosen ?? (dark ? "dark" : "light");
})();
