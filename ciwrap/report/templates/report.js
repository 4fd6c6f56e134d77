"use strict";
(() => {
  const root = document.documentElement;
  root.classList.add("js");
  const search = document.getElementById("q");
  const count = document.getElementById("shown");
  const chips = [...document.querySelectorAll("[data-show]")];
  const items = [...document.querySelectorAll("[data-v]")].map((node) => ({ node, text: null }));
  const rows = items.filter((item) => item.node.tagName === "TR").length;
  const textOf = (item) => (item.text ??= (item.node.dataset.t || item.node.textContent).toLowerCase());

  // What is shown is kept behind the #, so that a link shares it, from a file as well.
  const read = () => {
    const state = new URLSearchParams(location.hash.includes("=") ? location.hash.slice(1) : "");
    if (!search) return;
    search.value = state.get("q") || "";
    const show = state.get("show");
    for (const chip of chips) {
      chip.setAttribute("aria-pressed", String(show === null || show.split(",").includes(chip.dataset.show)));
    }
    apply();
    const at = state.get("at");
    if (at) document.getElementById(at)?.scrollIntoView();
  };
  const on = () => chips.filter((chip) => chip.getAttribute("aria-pressed") === "true").map((chip) => chip.dataset.show);
  const write = () => {
    const state = new URLSearchParams();
    if (search.value) state.set("q", search.value);
    if (on().length < chips.length) state.set("show", on().join(","));
    const hash = state.toString();
    history.replaceState(null, "", hash ? `#${hash}` : location.pathname + location.search);
  };
  const matching = document.getElementById("matching");
  const wasOpen = matching?.open;
  // Of the table, fifty more rows at each click.
  const more = document.getElementById("more");
  const inMatrix = items.filter((item) => item.node.closest("#matrix"));
  const inFindings = items.filter((item) => item.node.tagName === "ARTICLE");
  let most = 50;
  const apply = () => {
    if (!search) return;
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const shown = new Set(on());
    let seen = 0;
    for (const item of items) {
      const keep = shown.has(item.node.dataset.v) && words.every((word) => textOf(item).includes(word));
      item.node.hidden = !keep;
      if (keep && item.node.tagName === "TR") seen += 1;
    }
    const kept = inMatrix.filter((item) => !item.node.hidden);
    for (const item of kept.slice(most)) item.node.hidden = true;
    if (more) more.parentNode.hidden = kept.length <= most;
    // No head over nothing.
    const table = document.getElementById("matrix")?.parentNode;
    if (table) table.hidden = kept.length === 0;
    const findings = document.getElementById("h-findings")?.parentNode;
    if (findings) findings.hidden = inFindings.every((item) => item.node.hidden);
    const only = on();
    if (matching) matching.open = wasOpen || words.length > 0 || (only.length === 1 && only[0] === "match");
    count.textContent = rows === 1 ? `${seen} of 1 variable` : seen === rows ? `${rows.toLocaleString("en")} variables` : `${seen.toLocaleString("en")} of ${rows.toLocaleString("en")} variables`;
  };
  more?.addEventListener("click", () => { most += 50; apply(); });
  let timer = 0;
  search?.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(() => { apply(); write(); }, rows > 2000 ? 150 : 0);
  });
  for (const chip of chips) {
    // One click shows that verdict alone, another one all of them; with Shift, one is added or taken.
    chip.addEventListener("click", (event) => {
      const alone = on().length === 1 && on()[0] === chip.dataset.show;
      if (event.shiftKey) chip.setAttribute("aria-pressed", String(chip.getAttribute("aria-pressed") !== "true"));
      else for (const other of chips) other.setAttribute("aria-pressed", String(alone || other === chip));
      apply();
      write();
    });
  }
  // A link to a card opens it.
  const unfold = () => {
    if (/^#c\d+$/.test(location.hash)) {
      const card = document.querySelector(location.hash);
      card?.querySelector("details.fold")?.setAttribute("open", "");
      card?.scrollIntoView();
    }
  };
  addEventListener("beforeprint", () => { for (const one of document.querySelectorAll("details")) one.open = true; for (const item of inMatrix) item.node.hidden = false; });
  addEventListener("hashchange", () => { unfold(); if (location.hash.includes("=") || !location.hash) read(); });

  const copied = async (text) => {
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch {
      // Pages opened from a file may not have the clipboard: the old way works there.
      const area = document.createElement("textarea");
      area.value = text;
      area.setAttribute("readonly", "");
      document.body.append(area);
      area.select();
      const done = document.execCommand("copy");
      area.remove();
      return done;
    }
  };
  const status = document.getElementById("status");
  for (const button of document.querySelectorAll("[data-copy]")) {
    const label = button.textContent;
    button.addEventListener("click", async () => {
      const done = await copied(document.getElementById(button.dataset.copy).textContent.trim());
      button.textContent = done ? "Copied" : "Select and copy it";
      status.textContent = button.textContent;
      setTimeout(() => { button.textContent = label; }, 1500);
    });
  }

  const cards = [...document.querySelectorAll(".card")];
  const step = (by) => {
    const open = cards.filter((card) => !card.hidden);
    if (!open.length) return;
    const line = 120;
    const tops = open.map((card) => card.getBoundingClientRect().top);
    // From the card one is at, else from what is on the screen.
    const current = open.indexOf(document.activeElement.closest?.(".card"));
    let at = current >= 0 ? Math.min(Math.max(current + by, 0), open.length - 1) : by > 0 ? tops.findIndex((top) => top > line + 5) : tops.findLastIndex((top) => top < line - 5);
    if (at < 0) at = by > 0 ? open.length - 1 : 0;
    open[at].scrollIntoView();
    open[at].focus({ preventScroll: true });
  };
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target instanceof HTMLInputElement) {
      if (event.key === "Escape") { search.value = ""; search.blur(); apply(); write(); }
      return;
    }
    if (event.key === "/" && search) { event.preventDefault(); search.focus(); }
    else if (chips[Number(event.key) - 1]) chips[Number(event.key) - 1].click();
    else if (event.key === "j") step(1);
    else if (event.key === "k") step(-1);
  });
  if (search) read();
  unfold();
})();
