// Runs before the first paint, so that a chosen theme does not flash.
(() => {
  try {
    const chosen = localStorage.getItem("ragtrace-theme");
    if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
  } catch { /* storage is off: the system's theme stays */ }
})();
