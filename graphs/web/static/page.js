// The page's own script: it listens to what happens and puts it where it belongs. Everything else is htmx.
(() => {
  const body = document.body;
  document.addEventListener("htmx:config:request", (event) => {
    event.detail.ctx.request.headers["x-questbook-token"] = body.dataset.token;
  });
  const place = body.dataset.place;
  if (!place) return;
  const one = (id) => document.getElementById(id);
  const scroller = () => document.scrollingElement;
  const work = {
    recall: "The dungeon master remembers…",
    roll_dice: "The dice are rolling…",
  };

  const atEnd = () => scroller().scrollHeight - scroller().scrollTop - innerHeight < 160;
  // To the end of the story, but never past the beginning of the last turn: what is long is read from its first word.
  const toEnd = () => {
    const last = [...document.querySelectorAll(".turn")].at(-1);
    const first = last ? last.getBoundingClientRect().top + scrollY - document.querySelector(".top").offsetHeight - 16 : Infinity;
    scroller().scrollTo({ top: Math.min(scroller().scrollHeight, first) });
  };

  const morph = async (name, target) => {
    const answer = await fetch(`${place}/${name}`, { headers: { accept: "text/html" } });
    if (!answer.ok || !one(target)) return;
    const follow = atEnd();
    const callbacks = { beforeNodeMorphed: (old) => !old.matches?.("[data-keep]") }; // what a person is looking for stays
    Idiomorph.morph(one(target), await answer.text(), { morphStyle: "outerHTML", callbacks });
    htmx.process(one(target));
    if (follow) toEnd();
  };
  const own = body.dataset.panels.split(" ");
  const panels = (...names) => names.filter((name) => own.includes(name)).forEach((name) => morph(`panel/${name}`, name));
  const news = (text) => { one("news").textContent = text; };

  const live = (player) => {
    one("live")?.remove();
    document.querySelector(".opening")?.remove();
    one("problem").replaceChildren();
    const turn = document.createElement("article");
    turn.className = "turn live";
    turn.id = "live";
    turn.setAttribute("aria-busy", "true");
    turn.setAttribute("aria-label", "The turn that is being told");
    if (player) {
      const said = turn.appendChild(document.createElement("blockquote"));
      said.className = "player";
      said.textContent = player;
    }
    const rolls = turn.appendChild(document.createElement("div"));
    rolls.id = "live-rolls";
    const reply = turn.appendChild(document.createElement("div"));
    reply.className = "reply";
    reply.id = "live-reply";
    const doing = turn.appendChild(document.createElement("p"));
    doing.className = "work";
    doing.id = "work";
    doing.textContent = "The dungeon master thinks…";
    one("story").insertBefore(turn, one("problem"));
    body.classList.add("replying");
    toEnd();
  };

  const piece = ({ text, paragraph }) => {
    const reply = one("live-reply");
    if (!reply) return;
    const follow = atEnd();
    if (paragraph || !reply.lastElementChild) reply.appendChild(document.createElement("p"));
    const [first, ...rest] = text.split(/\n\s*\n/);
    reply.lastElementChild.append(first);
    rest.forEach((part) => { reply.appendChild(document.createElement("p")).append(part); });
    one("work").textContent = "";
    if (follow) toEnd();
  };

  const handlers = {
    turn: ({ player }) => live(player),
    piece,
    dice: (roll) => {
      const shown = document.createElement("p");
      shown.className = `roll ${roll.success === true ? "won" : roll.success === false ? "lost" : ""}`;
      const die = shown.appendChild(document.createElement("span"));
      die.className = "die fresh";
      die.textContent = roll.natural ?? roll.total;
      const dc = roll.dc == null ? "" : ` against ${roll.dc}, ${roll.success ? "success" : "failure"}`;
      shown.append(` ${roll.reason || roll.expression}: ${roll.total}${dc}`);
      one("live-rolls")?.append(shown);
      news(shown.textContent);
      panels("dice");
    },
    work: ({ node }) => { if (one("work") && !one("live-reply").textContent) one("work").textContent = work[node] || "The dungeon master thinks…"; },
    memories: () => panels("memories"),
    notice: ({ text }) => news(text),
    replied: async () => { body.classList.remove("replying"); await morph("story", "story"); panels("sheet", "quest", "core"); },
    stopped: async () => { body.classList.remove("replying"); await morph("story", "story"); },
    problem: async () => { body.classList.remove("replying"); await morph("story", "story"); },
    pages: async () => { await morph("story", "story"); panels(...own); },
  };

  const listen = () => {
    const stream = new EventSource(`${place}/events?after=${body.dataset.number}`);
    for (const [name, handle] of Object.entries(handlers)) {
      stream.addEventListener(name, (event) => { body.dataset.number = event.lastEventId; handle(JSON.parse(event.data)); });
    }
  };

  // What opens to be changed has the keyboard, and is not left under the message.
  document.addEventListener("toggle", ({ target }) => {
    if (!target.open || !target.matches(".change")) return;
    target.querySelector("textarea")?.focus({ preventScroll: true });
    target.scrollIntoView({ block: "nearest" });
  }, true);

  // The message grows with its words; Enter sends, Shift-Enter makes a line.
  document.addEventListener("input", (event) => {
    if (event.target.id !== "text") return;
    event.target.style.setProperty("height", "auto");
    event.target.style.setProperty("height", `${event.target.scrollHeight}px`);
  });
  document.addEventListener("keydown", (event) => {
    if (event.target.id === "text" && event.key === "Enter" && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      if (event.target.value.trim()) one("say").requestSubmit();
    }
    const item = event.target.closest?.('[role="treeitem"]');
    if (!item) return;
    const items = [...item.parentElement.querySelectorAll('[role="treeitem"]')];
    const to = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (to) {
      event.preventDefault();
      items[Math.min(items.length - 1, Math.max(0, items.indexOf(item) + to))].focus();
    } else if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      go(item.dataset.where);
    }
  });
  const go = (where) => htmx.ajax("POST", `${place}/go`, { values: { where }, target: "#problem" });
  document.addEventListener("click", (event) => {
    const item = event.target.closest('[role="treeitem"]');
    if (item) go(item.dataset.where);
    const tab = event.target.closest("[data-view]");
    if (tab?.tagName === "BUTTON") {
      document.querySelector("main").dataset.view = tab.dataset.view;
      document.querySelectorAll("[role=tab]").forEach((other) => other.setAttribute("aria-selected", String(other === tab)));
    }
  });

  // A card opens when its content is there, and closes when the change was taken.
  document.addEventListener("htmx:after:swap", (event) => {
    if (one("card")?.childElementCount && !one("dialog").open && event.detail.ctx?.target?.id === "card") one("dialog").showModal();
  });
  handlers.pages = ((pages) => async (data) => { one("dialog").close(); await pages(data); if (one("words")?.value) htmx.trigger(one("words").form, "submit"); })(handlers.pages);
  document.addEventListener("click", (event) => { if (event.target === one("dialog")) one("dialog").close(); });

  if (one("live")) body.classList.add("replying");
  toEnd();
  panels("tree", "memories", "summary");
  if (one("story").querySelector("[data-last]")) morph("story", "story");
  listen();
})();
