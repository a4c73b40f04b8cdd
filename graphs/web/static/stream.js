// One event stream of a campaign for all tabs: over HTTP/1.1 a browser opens six connections to a server, and a stream
// holds one. A shared worker has the streams; pages get them by `openStream`, which is like an EventSource. Without shared
// workers each page has a stream of its own.
const openStream = (place, after, kinds) => {
  if (!window.SharedWorker) return new EventSource(`${place}/events?after=${after()}`);
  const stream = new EventTarget();
  const worker = new SharedWorker(openStream.script, "questbook");
  const tell = (event) => { stream.dispatchEvent(event); stream[`on${event.type}`]?.(event); };
  const leave = () => worker.port.postMessage({});
  const join = () => worker.port.postMessage({ place, after: Number(after()), kinds });
  const back = ({ persisted }) => { if (persisted) join(); };
  worker.onerror = () => { stream.readyState = EventSource.CLOSED; tell(new Event("error")); };
  worker.port.onmessage = ({ data: { name, state, data, lastEventId } }) => {
    if (data !== undefined) return tell(new MessageEvent(name, { data, lastEventId }));
    stream.readyState = state;
    tell(new Event(name));
  };
  addEventListener("pagehide", leave);
  addEventListener("pageshow", back);
  stream.close = () => {
    leave();
    removeEventListener("pagehide", leave);
    removeEventListener("pageshow", back);
    worker.port.close();
  };
  join();
  return stream;
};

if (self.document) openStream.script = document.currentScript.src;
else {
  const MOST = 3; // streams that stay open; those of further campaigns ask again every three seconds
  const KEPT = 1000; // events, for tabs that come later
  const streams = new Map(); // by place: its source, the last events, and its tabs, each with the event that its page is from
  const connect = (place, stream) => {
    stream.source?.close();
    stream.isBrief = [...streams.values()].indexOf(stream) >= MOST;
    const source = stream.source = new EventSource(`${place}/events?after=${stream.number}${stream.isBrief ? "&brief" : ""}`);
    const tell = (message) => stream.tabs.forEach((after, port) => {
      if (message.name === "pages" || !(Number(message.lastEventId) <= after)) port.postMessage(message);
    });
    let wasOpen = false;
    source.onopen = () => { wasOpen = true; tell({ name: "open", state: source.readyState }); };
    source.onerror = () => {
      if (!stream.isBrief || !wasOpen) tell({ name: "error", state: source.readyState });
      wasOpen = false;
    };
    for (const name of stream.kinds) {
      source.addEventListener(name, ({ data, lastEventId }) => {
        stream.number = Number(lastEventId);
        stream.events.push({ name, data, lastEventId });
        if (stream.events.length > KEPT) stream.from = Number(stream.events.shift().lastEventId);
        tell({ name, data, lastEventId });
      });
    }
  };
  const leave = (port) => {
    for (const [place, stream] of streams) {
      if (!stream.tabs.delete(port) || stream.tabs.size) continue;
      stream.source.close();
      streams.delete(place);
    }
    [...streams].slice(0, MOST).forEach(([place, stream]) => { if (stream.isBrief) connect(place, stream); });
  };
  const join = (port, place, after, kinds) => {
    if (!streams.has(place)) streams.set(place, { kinds, tabs: new Map(), events: [], from: after, number: after });
    const stream = streams.get(place);
    stream.tabs.set(port, after);
    if (!stream.source || stream.source.readyState === EventSource.CLOSED) return connect(place, stream);
    port.postMessage({ name: "open", state: stream.source.readyState });
    if (after < stream.from) port.postMessage({ name: "pages", data: "{}", lastEventId: String(stream.number) });
    else stream.events.filter(({ lastEventId }) => Number(lastEventId) > after).forEach((event) => port.postMessage(event));
  };
  self.onconnect = ({ ports: [port] }) => {
    port.onmessage = ({ data: { place, after, kinds } }) => {
      leave(port);
      if (place) join(port, place, after, kinds);
    };
  };
  addEventListener("online", () => streams.forEach((stream, place) => connect(place, stream)));
}
