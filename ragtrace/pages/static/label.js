// Keys of a rating: a button or a field says which key is its own.
(() => {
  const mark = (name) => `[data-press="${CSS.escape(name)}"], [data-focus="${CSS.escape(name)}"]`;
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
    if (event.target.matches("input, select, textarea")) {
      if (event.key !== "Enter" || !event.target.matches("[data-focus]")) return;
      event.preventDefault(); // Enter in the field of a value saves it
      event.target.form.querySelector('button[name="value"][value=""]').click();
      return;
    }
    const found = document.querySelector(mark(event.key));
    if (!found) return;
    event.preventDefault();
    if (found.dataset.press) found.click();
    else found.focus();
  });
})();
