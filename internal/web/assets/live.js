// Keeps a page up to date while it is looked at. Without it every page is whole, and a reload renews it.
"use strict";
(() => {
  const byID = (id) => document.getElementById(id);
  const pause = byID("pause"), offline = byID("offline"), log = byID("log");
  let paused = false;

  // Times are shown in the reader's time zone; the page comes with UTC.
  const localise = (root) => {
    for (const t of root.querySelectorAll("time")) {
      const at = new Date(t.dateTime);
      t.title = at.toLocaleString();
      if (!t.classList.contains("clock")) continue;
      const day = at.toDateString() === new Date().toDateString() ? "" : at.toLocaleDateString("en", { month: "short", day: "numeric" }) + " ";
      t.textContent = day + at.toTimeString().slice(0, 8);
    }
  };

  // morph makes a node like another one in place, so that focus, selection and scrolling stay what they are. Children
  // with a data-key are the same wherever they stand.
  const key = (n) => (n.dataset && n.dataset.key) || "";
  const like = (a, b) => a.nodeType === b.nodeType && a.nodeName === b.nodeName && key(a) === key(b);
  const morph = (now, next) => {
    if (now.isEqualNode(next)) return;
    if (now.nodeType !== Node.ELEMENT_NODE) {
      now.nodeValue = next.nodeValue;
      return;
    }
    for (const a of [...now.attributes]) {
      if (!next.hasAttribute(a.name) && a.name !== "open") now.removeAttribute(a.name);
    }
    for (const a of next.attributes) {
      if (now.getAttribute(a.name) !== a.value) now.setAttribute(a.name, a.value);
    }
    const wanted = [...next.childNodes];
    const keys = new Set(wanted.map(key));
    let at = now.firstChild;
    const drop = () => {
      const gone = at;
      at = at.nextSibling;
      gone.remove();
    };
    for (const want of wanted) {
      while (at && key(at) && !keys.has(key(at))) drop();
      let same = at && like(at, want) ? at : null;
      if (!same && key(want)) same = [...now.children].find((n) => like(n, want));
      if (!same) {
        now.insertBefore(document.importNode(want, true), at);
        continue;
      }
      if (same === at) at = at.nextSibling;
      else now.insertBefore(same, at);
      morph(same, want);
    }
    while (at) drop();
  };

  const say = (text) => {
    offline.hidden = !text;
    if (offline.textContent !== text) offline.textContent = text;
  };
  let renewed = new Date();
  const away = () => say("No answer. This is how it was at " + renewed.toLocaleTimeString() + ".");

  // renew fetches the page again and takes over what has changed in its live parts.
  let busy = false, again = false;
  const renew = async () => {
    if (paused || document.hidden) return;
    if (busy) {
      again = true;
      return;
    }
    busy = true;
    try {
      const answer = await fetch(location.href, { headers: { Accept: "text/html", "Outlast-Renew": "1" }, cache: "no-cache" });
      if (answer.status === 401) return void location.reload(); // leads to the login
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      localise(page);
      const parts = [...document.querySelectorAll("[data-live]")].map((now) => [now, page.getElementById(now.id)]);
      if (!parts.some(([, next]) => next)) {
        if (answer.status >= 500) return away();
        return void location.reload(); // it is another page by now
      }
      for (const [now, next] of parts) {
        if (next) morph(now, next);
      }
      document.title = page.title;
      const icon = document.querySelector("link[rel=icon]"), href = page.querySelector("link[rel=icon]").getAttribute("href");
      if (icon.getAttribute("href") !== href) icon.setAttribute("href", href);
      renewed = new Date();
      say("");
    } catch {
      away();
    } finally {
      busy = false;
      if (again) {
        again = false;
        setTimeout(renew, 500);
      }
    }
  };

  // The output: lines that are whole, and the one that is being written. What stands after a carriage return is written
  // over what stood before it.
  const mostText = 2e6;
  let tail = "", shown = 0;
  const tailNode = document.createTextNode("");
  const overwritten = (line) => line.replace(/\r+$/, "").replace(/^.*\r/s, "");
  const append = (text) => {
    const atEnd = log.scrollHeight - log.scrollTop - log.clientHeight < 30;
    tail += text;
    const cut = tail.lastIndexOf("\n") + 1;
    if (cut) {
      const whole = tail.slice(0, cut).split("\n").map(overwritten).join("\n");
      log.insertBefore(document.createTextNode(whole), tailNode);
      shown += whole.length;
      tail = tail.slice(cut);
    }
    tailNode.data = overwritten(tail);
    while (shown > mostText && log.firstChild !== tailNode) {
      shown -= log.firstChild.data.length;
      log.firstChild.remove();
    }
    if (atEnd) log.scrollTop = log.scrollHeight;
  };

  // The stream is closed while nobody looks: a browser has few connections to a server.
  const source = log && log.dataset.stream;
  let stream = null, position = "", over = log && !source, soon = 0, later = 0;
  const close = () => {
    if (stream) stream.close();
    stream = null;
  };
  const open = () => {
    if (!source || over || paused || document.hidden || stream) return;
    const url = new URL(source, location.href);
    if (position) url.searchParams.set("from", position);
    const mine = stream = new EventSource(url);
    const on = (kind, f) => mine.addEventListener(kind, (e) => {
      if (e.lastEventId) position = e.lastEventId;
      f(JSON.parse(e.data));
    });
    on("log", append);
    on("attempt", (line) => append((tail ? "\n" : "") + line + "\n"));
    on("change", () => {
      clearTimeout(soon);
      soon = setTimeout(renew, 300);
    });
    on("end", () => {
      close();
      renew().then(() => { over = true; });
    });
    mine.onopen = () => say("");
    mine.onerror = () => {
      if (mine.readyState !== EventSource.CLOSED) return away(); // it tries again by itself
      if (stream === mine) stream = null;
      clearTimeout(later); // it was refused: ask again later
      later = setTimeout(open, 5000);
    };
  };

  localise(document);
  if (location.search.includes("said=")) { // told once
    const url = new URL(location.href);
    url.searchParams.delete("said");
    history.replaceState(null, "", url);
  }
  if (log) {
    shown = log.textContent.length;
    log.append(tailNode);
    log.scrollTop = log.scrollHeight;
  }
  if (over) return;
  const wake = () => {
    if (paused || document.hidden) return close();
    renew();
    open();
  };
  pause.hidden = false;
  pause.addEventListener("click", () => {
    paused = !paused;
    pause.setAttribute("aria-pressed", String(paused));
    wake();
  });
  document.addEventListener("visibilitychange", wake);
  setInterval(() => { if (!over) renew(); }, log ? 5000 : 3000);
  open();
})();
