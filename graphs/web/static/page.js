// The page's own script: it listens to what happens and puts it where it belongs. Everything else is htmx.
(() => {
  const body = document.body;
  const one = (id) => document.getElementById(id);
  const described = (id) => document.querySelectorAll(`[aria-describedby~="${id}"]`);
  const fieldsOf = (element) => [...element.querySelectorAll("input, select, textarea")];
  // A draft is a field in which a person has written or chosen something else than the server has.
  const isDraft = (field) => field.options
    ? field.selectedIndex !== Math.max([...field.options].findIndex((option) => option.defaultSelected), 0)
    : field.value !== field.defaultValue || field.checked !== field.defaultChecked;
  const BY_ITSELF = { "x-questbook-refresh": "1" }; // what a page asks for because others play is nothing that its person does
  // That its campaign has begun: if it was renamed or removed elsewhere, this page begins no other in its place.
  const begun = () => (document.querySelector("body[data-begun], #story[data-begun]") ? { "x-questbook-begun": "1" } : {});
  const sent = new WeakMap(); // what was last sent of a field
  const passed = new WeakSet(); // drafts that a refresh has passed over since they were sent
  document.addEventListener("htmx:config:request", ({ target: form, detail: { ctx } }) => {
    Object.assign(ctx.request.headers, begun(), { "x-questbook-token": body.dataset.token });
    if (ctx.request.method === "GET" && !ctx.sourceEvent?.isTrusted) Object.assign(ctx.request.headers, BY_ITSELF);
    for (const alert of [...form.querySelectorAll("[role=alert]"), ctx.target].filter((each) => each?.role === "alert")) {
      alert.replaceChildren();
      described(alert.id).forEach((field) => field.removeAttribute("aria-invalid"));
    }
    if (form.matches("form")) fieldsOf(form).forEach((field) => { sent.set(field, field.value); passed.delete(field); });
  });
  // What was refused says so at its field; the first wrong field has the keyboard.
  document.addEventListener("htmx:after:swap", ({ detail: { ctx } }) => {
    if (!ctx?.target?.querySelector?.(":scope > .problem")) return;
    const fields = described(ctx.target.id);
    fields.forEach((field) => field.setAttribute("aria-invalid", "true"));
    fields[0]?.closest("details")?.setAttribute("open", "");
    fields[0]?.focus();
  });
  // Files may be dropped where they are chosen; dropped beside it, they do not take the page away.
  for (const kind of ["dragover", "dragleave", "drop"]) {
    document.addEventListener(kind, (event) => {
      const zone = event.target.closest?.(".drop");
      if (event.dataTransfer?.types.includes("Files")) event.preventDefault();
      document.querySelectorAll(".drop").forEach((other) => other.classList.toggle("over", other === zone && kind === "dragover"));
      if (kind !== "drop" || !zone || !event.dataTransfer.files.length) return;
      zone.querySelector("input[type=file]").files = event.dataTransfer.files;
      zone.requestSubmit();
    });
  }
  const place = body.dataset.place;
  if (!place) return;
  const scroller = () => document.scrollingElement;

  const lastTurn = () => [...document.querySelectorAll(".turn")].at(-1);
  const atEnd = () => scroller().scrollHeight - scroller().scrollTop - innerHeight < 160;
  // To the end of the story, but never past the beginning of the last turn: what is long is read from its first word.
  const toEnd = () => {
    const last = lastTurn();
    const first = last ? last.getBoundingClientRect().top + scrollY - document.querySelector(".top").offsetHeight - 16 : Infinity;
    scroller().scrollTo({ top: Math.min(scroller().scrollHeight, first) });
  };

  // Turns that have left the prompt stay on the page, where the story before them is as it was.
  const withEarlier = (text) => {
    const made = new DOMParser().parseFromString(text, "text/html").body.firstElementChild;
    const first = made.querySelector(".turn[data-turn]");
    const number = Number((first ?? made).dataset.turn);
    const earlier = [...one("story").querySelectorAll(".turn[data-turn]")].filter((turn) => Number(turn.dataset.turn) < number);
    if (!earlier.length || !made.querySelector(".turn")) return text;
    made.querySelector("#earlier")?.remove();
    if (one("earlier")) earlier.unshift(one("earlier"));
    made.querySelector(".turn").before(...earlier.map((turn) => turn.cloneNode(true)));
    return made.outerHTML;
  };
  // What is pressed stays in its place until its click has come, for a second at most.
  let pressed, letGo, patience;
  addEventListener("pointerdown", () => {
    pressed ??= new Promise((go) => {
      letGo = () => { clearTimeout(patience); pressed = null; go(); };
      patience = setTimeout(letGo, 1000);
    });
  }, true);
  for (const kind of ["pointerup", "pointercancel"]) addEventListener(kind, () => setTimeout(() => letGo?.()), true);
  // A button of a panel, or the one in its place after a refresh.
  const again = (button) => (button.isConnected ? button : document.querySelector(button.role === "treeitem" ? '[role="treeitem"][tabindex="0"]' : `[hx-get="${CSS.escape(button.getAttribute("hx-get"))}"]`));
  const refresh = async (name, target, isSameLine) => {
    let answer, turn, tries = 0;
    do { // a turn that begins meanwhile is not in the answer
      turn = one("live");
      answer = await fetch(`${place}/${name}`, { headers: { accept: "text/html", ...BY_ITSELF, ...begun() } }).catch(() => null);
      if ((!answer || answer.status === 429 || answer.status >= 500) && tries++ < 10) { // nothing else asks again
        await new Promise((done) => setTimeout(done, 1000 * tries));
        answer = null;
      }
    } while ((!answer && tries <= 10) || (target === "story" && one("live") !== turn));
    if (!answer) return;
    if (answer.status === 410) return leave(answer);
    const made = await answer.text();
    while (pressed) await pressed; // or what is clicked would be another when the button is let go
    if (!answer.ok || !one(target)) return;
    const text = isSameLine ? withEarlier(made) : made;
    const follow = target === "story" && atEnd();
    const before = lastTurn(), top = before?.getBoundingClientRect().top;
    const focus = document.activeElement;
    const drafts = new Map(fieldsOf(one(target)).filter(isDraft).map((field) => [field, field.value]));
    drafts.forEach((_, field) => passed.add(field));
    // What a person writes stays, and if its form goes, the form stays open; what was said at a field stays until they send.
    const callbacks = {
      beforeNodeMorphed: (old, made) => made.hasChildNodes() || !old.matches?.("[data-keep], [role=alert]"),
      beforeNodeRemoved: (old) => ![...drafts.keys()].some((field) => old.contains(field) && !field.closest("details:not([open])")),
      beforeAttributeUpdated: (attribute, node) => (attribute === "open" ? node.tagName !== "DETAILS" : !drafts.has(node)),
      afterNodeMorphed: (old, made) => {
        if (drafts.has(old)) for (const name of ["defaultValue", "defaultChecked"]) if (name in old) old[name] = made[name];
      },
    };
    Idiomorph.morph(one(target), text, { morphStyle: "outerHTML", callbacks });
    htmx.process(one(target));
    drafts.forEach((value, field) => {
      if ([...field.options ?? []].some((option) => option.value === value)) field.value = value;
    });
    if (again(focus) !== document.activeElement) again(focus)?.focus({ preventScroll: true });
    rove(one(reached));
    const number = one("story").dataset.turn;
    one("turn").textContent = number === "0" ? "" : `turn ${number}`;
    if (target === "story") body.classList.toggle("replying", Boolean(one("live")));
    // The words that one reads stay where they are when the reply has come.
    if (follow && before && !one("unanswered") && [lastTurn()?.id, "live"].includes(before.id) && lastTurn()) scrollBy(0, lastTurn().getBoundingClientRect().top - top);
    else if (follow) toEnd();
    restoreDrafts();
  };
  // Refreshes of one panel come one after the other, so that the last one shows the latest.
  const refreshes = {};
  const morph = (name, target, isSameLine) => {
    one(target).ariaBusy = "true"; // until the last of them
    const last = Promise.resolve(refreshes[target]).catch(() => {}).then(() => refresh(name, target, isSameLine))
      .finally(() => { one(target).ariaBusy = refreshes[target] === last ? null : "true"; });
    refreshes[target] = last;
    return last;
  };
  const own = body.dataset.panels.split(" ");
  const panels = (...names) => names.filter((name) => own.includes(name)).forEach((name) => morph(`panel/${name}`, name));
  const news = (text) => { one("news").textContent = text; };

  const live = (player, work) => {
    document.querySelectorAll("#live, #unanswered, .opening").forEach((old) => old.remove());
    one("problem").replaceChildren();
    const turn = document.createElement("article");
    turn.className = "turn live";
    turn.id = "live";
    turn.setAttribute("aria-busy", "true"); // its words are announced once, when they are all there
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
    doing.textContent = work;
    one("story").insertBefore(turn, one("problem"));
    body.classList.add("replying");
    toEnd();
  };

  // A piece of the reply: so many blocks stay as they are, and these come after them. The server has made them harmless.
  const piece = ({ after, html }) => {
    const reply = one("live-reply");
    if (!reply) return;
    const follow = atEnd();
    [...reply.children].slice(after).forEach((old) => old.remove());
    reply.insertAdjacentHTML("beforeend", html);
    one("work").textContent = "";
    if (follow) toEnd();
  };

  const handlers = {
    turn: ({ player, work }) => live(player, work),
    piece,
    dice: (roll) => {
      const shown = document.createElement("div");
      shown.className = `roll ${roll.foe ? "foe" : roll.success === true ? "won" : roll.success === false ? "lost" : ""}`;
      const die = shown.appendChild(document.createElement("span"));
      die.className = "die fresh";
      die.textContent = roll.natural ?? roll.total;
      const dc = roll.dc == null ? "" : ` against ${roll.dc}, ${roll.text.split(": ").at(-1)}`;
      const total = document.createElement("b");
      total.textContent = roll.total;
      const sum = document.createElement("small");
      sum.textContent = `${roll.expression}${roll.advantage ? ` with ${roll.advantage}` : ""} = ${(roll.breakdown ?? "").replaceAll("~~", "")}`;
      shown.appendChild(document.createElement("p")).append(`${roll.reason || roll.expression}: `, total, `${dc} `, sum);
      const follow = atEnd();
      one("live-rolls")?.append(shown);
      news(shown.lastChild.textContent);
      if (follow) toEnd();
    },
    work: ({ text }) => { if (one("work") && !one("live-reply").textContent) one("work").textContent = text; },
    memories: () => panels("memories"),
    notice: ({ text }) => news(text),
    gone: async () => { // renamed, not shared any more, or the sign-in has ended: the server says which
      const answer = await ask();
      if (answer?.status === 410) leave(answer);
      else location.reload();
    },
    replied: async () => {
      one("problem").replaceChildren(); // that it was still coming
      body.classList.replace("replying", "noting");
      await morph("story", "story", true);
      news(lastTurn()?.querySelector(".reply").textContent ?? "");
      panels("sheet", "quest", "core", "tree");
    },
    stopped: async () => { body.classList.remove("replying"); await morph("story", "story", true); },
    problem: async () => { body.classList.remove("replying"); await morph("story", "story", true); },
    pages: async ({ isSameLine }) => {
      const [before, noted] = [one("story").dataset.turn, body.classList.contains("noting")];
      body.classList.remove("noting");
      await morph("story", "story", isSameLine);
      const now = one("story").dataset.turn;
      if (now !== before && !noted) news(`The story is at turn ${now}.`);
      panels(...own);
      if (one("words")?.value) htmx.trigger(one("words").form, "submit");
      if (one("known")?.childElementCount && !fieldsOf(one("known")).some(isDraft)) htmx.ajax("GET", `${place}/known`, { target: "#known" });
    },
  };

  // While nothing is heard of the server, a line above the message says so, and the page goes on by itself afterwards.
  let silence; // runs on while the stream is tried again and again
  const heard = (isThere, patience = 5000) => {
    if (isThere || !patience) silence = clearTimeout(silence);
    const say = (text) => { if (one("unheard").textContent !== text) one("unheard").textContent = text; };
    if (isThere) say("");
    else silence ??= setTimeout(() => say(`${navigator.onLine ? "The server does not answer." : "There is no network."} Your words stay here, and the page goes on by itself when it is back.`), patience);
  };
  addEventListener("offline", () => heard(false, 0));
  addEventListener("online", () => listen());
  document.addEventListener("htmx:error", () => heard(false, 0));
  // What a proxy answers for a server that is gone is shown nowhere, and what was sent stays where it was written.
  document.addEventListener("htmx:before:swap", (event) => {
    const { status, headers } = event.detail.ctx?.response ?? {};
    if (!(status >= 500) || headers.has("content-security-policy")) return; // the server's own words
    event.preventDefault();
    heard(false, 0);
  });
  let stream;
  const listen = () => {
    stream?.close();
    stream = openStream(place, () => body.dataset.number, Object.keys(handlers)); // of all tabs; like an EventSource
    stream.onopen = () => heard(true);
    stream.onerror = () => {
      heard(false, navigator.onLine ? 5000 : 0);
      if (stream.readyState === EventSource.CLOSED) setTimeout(listenAgain, 3000); // else the browser opens it again
    };
    for (const [name, handle] of Object.entries(handlers)) {
      stream.addEventListener(name, (event) => { body.dataset.number = event.lastEventId; handle(JSON.parse(event.data)); });
    }
  };

  const ask = () => fetch(`${place}/story`, { headers: { ...BY_ITSELF, ...begun() } }).catch(() => null);
  const listenAgain = async () => {
    const answer = await ask();
    if (answer?.status === 410) leave(answer);
    else if (answer?.status >= 400 && answer.status < 500) location.reload(); // the server says why
    else if (stream.readyState === EventSource.CLOSED) listen();
  };

  // Words that were not sent are there again when one comes back to the page, or loads it again.
  const drafts = new Map(JSON.parse(sessionStorage.getItem(`drafts of ${place}`) ?? "[]"));
  const restoreDrafts = () => drafts.forEach((value, id) => {
    const field = one(id);
    if (!field) return;
    drafts.delete(id);
    if (isDraft(field)) return;
    field.value = value;
    field.closest("details")?.setAttribute("open", "");
    field.dispatchEvent(new Event("input", { bubbles: true }));
  });
  // Where a campaign has another name now, this tab follows, with what is written in it; of one that is gone it says so.
  let kept = place;
  const leave = async (answer) => {
    const to = answer.headers.get("questbook-moved-to");
    if (to) {
      kept = to;
      sessionStorage.removeItem(`drafts of ${place}`);
      location.replace(`${to}/`);
      return;
    }
    const said = new DOMParser().parseFromString(await answer.text(), "text/html").querySelector(".problem");
    if (said.textContent !== one("problem").textContent) one("problem").replaceChildren(said);
  };
  document.addEventListener("htmx:after:request", ({ detail: { ctx } }) => {
    if (ctx?.response?.headers?.has("questbook-moved-to")) leave(ctx.response);
  });
  addEventListener("pagehide", () => {
    const fields = fieldsOf(document.querySelector("main")).filter((field) => field.id && !["hidden", "search"].includes(field.type) && isDraft(field));
    sessionStorage.setItem(`drafts of ${kept}`, JSON.stringify([...drafts, ...fields.map((field) => [field.id, field.value])]));
  });

  // What opens to be changed has the keyboard, and is not left under the message.
  document.addEventListener("toggle", ({ target }) => {
    if (!target.open || !target.matches(".change")) return;
    target.querySelector("textarea")?.focus({ preventScroll: true });
    target.scrollIntoView({ block: "nearest" });
  }, true);

  // The message grows with its words; Enter sends, Shift-Enter makes a line.
  document.addEventListener("input", (event) => {
    if (event.target.id !== "text" || CSS.supports("field-sizing", "content")) return;
    event.target.style.setProperty("height", "auto");
    event.target.style.setProperty("height", `${event.target.scrollHeight + 2}px`); // with its border
  });
  document.addEventListener("keydown", (event) => {
    if (event.target.id === "text" && event.key === "Enter" && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      if (event.target.value.trim()) one("say").requestSubmit();
    }
    if (event.target.id === "text" && event.key === "Escape") document.querySelector(".replying .stop")?.click();
    const item = event.target.closest?.('[role="treeitem"]');
    if (!item) return;
    const items = itemsBeside(item);
    const at = items.indexOf(item);
    const level = (other) => Number(other.getAttribute("aria-level"));
    const to = {
      ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: items.length - 1,
      ArrowLeft: items.findLastIndex((other, row) => row < at && level(other) < level(item)),
      ArrowRight: level(items[at + 1] ?? item) > level(item) ? at + 1 : at,
    }[event.key];
    if (to !== undefined) {
      event.preventDefault();
      (items[to] ?? item).focus();
    } else if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      go(item.dataset.where);
    }
  });
  const itemsBeside = (item) => [...item.parentElement.querySelectorAll('[role="treeitem"]')];
  // Of the tree, Tab reaches the row where one was last, also after a refresh while one was elsewhere.
  let reached;
  const rove = (row) => {
    if (row?.role !== "treeitem") return;
    reached = row.id;
    itemsBeside(row).forEach((item) => { item.tabIndex = item === row ? 0 : -1; });
  };
  document.addEventListener("focusin", ({ target }) => rove(target));
  const go = (where) => htmx.ajax("POST", `${place}/go`, { values: { where }, target: "#problem" });
  // The second click of a double click asks for nothing. Undo of a message without a reply is as Take it back.
  addEventListener("click", (event) => {
    const button = event.target.closest("[hx-post$='/retry'], [hx-post$='/undo'], .change button");
    if (button?.accessKey === "u" && event.detail < 2) button.dataset.words = one("take-back")?.dataset.words ?? "";
    if (!button || event.detail < 2) return;
    event.preventDefault();
    event.stopImmediatePropagation();
  }, true);
  document.addEventListener("click", (event) => {
    const item = event.target.closest('[role="treeitem"]');
    if (item) go(item.dataset.where);
    const tab = event.target.closest("[data-view]");
    if (tab?.tagName === "BUTTON") {
      document.querySelector("main").dataset.view = tab.dataset.view;
      document.querySelectorAll(".views button").forEach((other) => other.setAttribute("aria-pressed", String(other === tab)));
      scrollTo(0, tab.dataset.view === "story" ? body.scrollHeight : 0);
    }
  });

  // Earlier turns come above what is being read, which stays where it is.
  let below = null;
  document.addEventListener("htmx:before:swap", ({ detail: { ctx } }) => {
    if (ctx?.sourceElement?.id === "earlier") below = scroller().scrollHeight - scrollY;
  });
  document.addEventListener("htmx:after:swap", () => {
    if (below !== null) scrollTo(0, scroller().scrollHeight - below);
    below = null;
    if (one("problem").childElementCount) one("problem").scrollIntoView({ block: "nearest" });
  });

  // What was said leaves the field; what was written since stays in it.
  document.addEventListener("htmx:after:swap", ({ detail: { ctx } }) => {
    if (ctx?.target?.id !== "ticket") return;
    const text = one("text");
    if (text.value.startsWith(sent.get(text))) text.value = text.value.slice(sent.get(text).length);
    text.dispatchEvent(new Event("input", { bubbles: true }));
    text.focus();
  });

  // A card opens when its content is there, and closes, as a form does, when the change was taken.
  document.addEventListener("htmx:after:swap", ({ detail: { ctx } }) => {
    if (ctx?.target?.id === "matches") news(one("matches").innerText.trim() && `Memories that fit: ${document.querySelectorAll("#matches li").length}.`);
    if (ctx?.target?.id !== "card") return;
    const first = one("card").querySelector("[autofocus], textarea, select, input:not([type=hidden]), .field, button");
    if (!one("dialog").open) {
      one("dialog").showModal();
      one("dialog").addEventListener("close", () => again(ctx.sourceElement)?.focus(), { once: true });
    }
    first?.focus();
    one("dialog").scrollTop = 0;
  });
  document.addEventListener("htmx:after:request", ({ detail: { ctx } }) => {
    if (ctx?.response?.status !== 204) return;
    const words = ctx.sourceElement.dataset.words; // of a message that was taken back
    if (words && !one("text").value) {
      one("text").value = words;
      one("text").dispatchEvent(new Event("input", { bubbles: true }));
      one("text").focus();
    }
    if (one("dialog").contains(ctx.sourceElement)) one("dialog").close();
    ctx.sourceElement.closest("details")?.removeAttribute("open");
    // What was sent is the server's; what was written since is not.
    if (!ctx.sourceElement.matches("form")) return;
    for (const field of fieldsOf(ctx.sourceElement).filter((each) => !each.options && each.value === sent.get(each))) {
      if (passed.has(field)) field.value = field.defaultValue;
      else field.defaultValue = field.value;
    }
  });
  document.addEventListener("click", (event) => { if (event.target === one("dialog")) one("dialog").close(); });

  if (one("live")) body.classList.add("replying");
  restoreDrafts();
  toEnd();
  panels("tree", "memories", "summary", "dice");
  if (one("story").querySelector("#last")) morph("story", "story");
  listen();
})();
