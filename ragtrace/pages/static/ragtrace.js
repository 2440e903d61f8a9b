// Keys, themes and pauses. Every page works without it.
(() => {
  const one = (selector, root = document) => root.querySelector(selector);
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];

  // Theme: system, light, dark.
  const themes = ["system", "light", "dark"];
  const setTheme = (name) => {
    const root = document.documentElement;
    if (name === "system") delete root.dataset.theme;
    else root.dataset.theme = name;
    const button = one("#theme");
    if (button) {
      button.textContent = { system: "◐", light: "☀", dark: "☾" }[name];
      button.setAttribute("aria-label", `Theme: ${name}`);
      button.title = `Theme: ${name}`;
    }
  };
  const startTheme = () => {
    setTheme(document.documentElement.dataset.theme ?? "system");
    one("#theme")?.addEventListener("click", () => {
      const now = document.documentElement.dataset.theme ?? "system";
      const next = themes[(themes.indexOf(now) + 1) % themes.length];
      setTheme(next);
      try {
        if (next === "system") localStorage.removeItem("ragtrace-theme");
        else localStorage.setItem("ragtrace-theme", next);
      } catch { /* storage is off: the choice lasts as long as the page */ }
    });
  };

  // Updates: not while they are paused, the page is hidden, or a person types in it.
  const startUpdates = () => {
    const content = one("#content");
    const button = one("#pause");
    if (!content?.dataset.hxGet || !button) return;
    button.hidden = false;
    let isPaused = false;
    button.addEventListener("click", () => {
      isPaused = !isPaused;
      button.setAttribute("aria-pressed", String(isPaused));
      button.textContent = isPaused ? "Updates paused" : "Pause updates";
    });
    const say = (text) => { button.textContent = text; };
    document.addEventListener("htmx:error", () => say("Server stopped"));
    document.addEventListener("htmx:after:request", () => { if (!isPaused) say("Pause updates"); });
    const isBusy = () =>
      document.activeElement?.matches("#content :is(input, select, textarea)") || !getSelection().isCollapsed;
    document.addEventListener("htmx:before:request", (event) => {
      if (event.target.id === "content" && (isPaused || document.hidden || isBusy())) event.preventDefault();
    });
  };

  // Keys.
  const rows = () => all("[data-row]");
  const move = (step) => {
    const link = one(step > 0 ? "a[rel=next]" : "a[rel=prev]");
    const found = rows();
    if (!found.length) return link?.click();
    const at = found.indexOf(document.activeElement);
    const next = found[at < 0 ? (step > 0 ? 0 : found.length - 1) : Math.min(Math.max(at + step, 0), found.length - 1)];
    next.focus();
    next.scrollIntoView({ block: "nearest" });
  };
  const shortcuts = {
    j: () => move(1),
    k: () => move(-1),
    ArrowDown: (event) => document.activeElement?.matches("[data-row]") && (event.preventDefault(), move(1)),
    ArrowUp: (event) => document.activeElement?.matches("[data-row]") && (event.preventDefault(), move(-1)),
    "/": (event) => {
      const search = one("input[type=search]");
      if (!search) return;
      event.preventDefault();
      search.closest("details")?.setAttribute("open", "");
      search.focus();
    },
    "?": () => one("#shortcuts")?.showModal(),
  };
  let isGoing = false;
  const onKey = (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || one("dialog[open]")) return;
    if (event.target.matches("input, select, textarea")) {
      if (event.key === "Escape") event.target.blur();
      return;
    }
    if (isGoing) {
      isGoing = false;
      one(`nav a[data-key="${CSS.escape(event.key)}"]`)?.click();
      return;
    }
    if (event.key === "g") {
      isGoing = true;
      setTimeout(() => { isGoing = false; }, 1000);
      return;
    }
    shortcuts[event.key]?.(event);
  };

  // A run: a claim and its evidence light up together.
  const startEvidence = () => {
    const light = (event) => {
      const element = event.target.closest?.("[data-claims]");
      all(".hot").forEach((found) => found.classList.remove("hot"));
      if (!element) return;
      const numbers = element.dataset.claims.split(" ").filter(Boolean);
      for (const other of all("[data-claims]"))
        if (numbers.some((number) => other.dataset.claims.split(" ").includes(number))) other.classList.add("hot");
    };
    if (!one("[data-claims]")) return;
    document.addEventListener("mouseover", light);
    document.addEventListener("focusin", light);
  };

  // A button that copies the line beside it. Outside a secure context there is no clipboard: the line is selected.
  const startCopies = () => {
    all("[data-copy]").forEach((button) => { button.hidden = false; });
    document.addEventListener("click", async (event) => {
      const button = event.target.closest("[data-copy]");
      if (!button) return;
      const line = button.previousElementSibling;
      let isCopied = true;
      try {
        await navigator.clipboard.writeText(line.textContent);
      } catch {
        getSelection().selectAllChildren(line);
        isCopied = document.execCommand("copy");
      }
      button.textContent = isCopied ? "Copied" : "Selected";
      setTimeout(() => { button.textContent = "Copy"; }, 2000);
    });
  };

  // A choice in a filter applies at once; the button is for those without scripts, and for text.
  const startFilters = () => {
    // A field of a time holds whole seconds of UTC; untouched, it sends the exact time of the address.
    document.addEventListener("formdata", (event) => {
      for (const field of all("input[data-at]", event.target))
        if (field.value && field.dataset.at && field.value === field.defaultValue) event.formData.set(field.name, field.dataset.at);
    });
    document.addEventListener("change", (event) => {
      const form = event.target.closest("form.filter");
      if (form && event.target.matches("select")) form.requestSubmit();
    });
    document.addEventListener("submit", (event) => {
      const form = event.target.closest("form.filter");
      if (!form) return;
      for (const field of all("input, select", form)) if (!field.value) field.disabled = true; // keeps the address short
      setTimeout(() => all("[disabled]", form).forEach((field) => { field.disabled = false; }));
    });
  };

  const start = () => {
    startTheme();
    startUpdates();
    startEvidence();
    startFilters();
    startCopies();
    one("#keys")?.addEventListener("click", () => one("#shortcuts").showModal());
    document.addEventListener("keydown", onKey);
  };
  start();
})();
