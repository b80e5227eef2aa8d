// Requests to the server.

import { t } from "./strings.js";

const MAX_RETRIES = 5;

export class Failed extends Error {
  constructor(status, message, retryAfter) {
    super(message);
    Object.assign(this, { status, retryAfter });
  }
}

function headers(more = {}) {
  const key = sessionStorage.getItem("key");
  return key ? { ...more, Authorization: `Bearer ${key}` } : more;
}

async function checked(response) {
  if (response.ok) return response;
  const body = await response.json().catch(() => ({}));
  const error = body.error?.message ?? body.error ?? response.statusText;
  throw new Failed(response.status, error, Number(response.headers.get("Retry-After")) || 0);
}

/** Run a request again while the server is busy; `say` shows for how long it waits. */
export async function retrying(request, say, signal) {
  for (let retries = 0; ; retries += 1) {
    try {
      return await request();
    } catch (error) {
      if (!(error instanceof Failed) || !error.retryAfter || retries === MAX_RETRIES) throw error;
      say(t("busy", error.retryAfter));
      await new Promise((resolve) => setTimeout(resolve, 1000 * error.retryAfter));
      signal?.throwIfAborted();
      say();
    }
  }
}

export async function get(path, signal) {
  return (await checked(await fetch(path, { headers: headers(), signal }))).json();
}

export async function post(path, body, signal) {
  const options = { method: "POST", headers: headers({ "Content-Type": "application/json" }), signal };
  return (await checked(await fetch(path, { ...options, body: JSON.stringify(body) }))).json();
}

export async function upload(path, fields) {
  const form = new FormData();
  for (const [name, value] of Object.entries(fields)) form.append(name, value);
  return (await checked(await fetch(path, { method: "POST", headers: headers(), body: form }))).json();
}

/** The records of a stream of server-sent events. */
export async function* stream(path, body, signal) {
  const options = { method: "POST", headers: headers({ "Content-Type": "application/json" }), signal };
  const response = await checked(await fetch(path, { ...options, body: JSON.stringify({ ...body, stream: true }) }));
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const events = (rest + value).split("\n\n");
    rest = events.pop();
    for (const event of events) {
      const data = event.replace(/^data: /, "");
      if (data === "[DONE]") return;
      const record = JSON.parse(data);
      if (record.error) throw new Failed(503, record.error.message, 0);
      yield record;
    }
  }
}

/** A file made of a text, which the browser saves. */
export function saveAs(name, text) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: "application/octet-stream" }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}
