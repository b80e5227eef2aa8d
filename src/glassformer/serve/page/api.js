// Requests to the server.

import { session } from "./storage.js";
import { t } from "./strings.js";

export const IS_LOCAL = false; // texts are sent to a server

/**
 * Models of a server are loaded there.
 * @param {(fraction: number) => void} _show
 */
export function whileLoading(_show) {}

const OFFLINE_S = 2; // until a server that does not answer is asked again
const MAX_WAIT_S = 60; // each wait is twice as long as the one before, up to this
const BUTTON_S = 8; // wait from which on there is a button for another try
const POLL_MS = 500;

export class Failed extends Error {
  /** @param {number} status @param {string} message @param {number} retryAfter */
  constructor(status, message, retryAfter) {
    super(message);
    this.status = status;
    this.retryAfter = retryAfter;
  }
}

/** The server does not answer. */
export class Offline extends Error {
  constructor() {
    super(t("noAnswer"));
  }
}

function headers(more = {}) {
  const key = session.get("key");
  return key ? { ...more, Authorization: `Bearer ${key}` } : more;
}

/**
 * @param {string} path @param {RequestInit} options @param {(response: Response) => any} read @returns {Promise<any>}
 */
async function ask(path, options, read = (response) => response.json()) {
  try {
    return await read(await checked(await fetch(path, options)));
  } catch (error) {
    throw error instanceof TypeError ? new Offline() : error; // TypeError: no connection, or one that ended early
  }
}

/** @param {Response} response */
async function checked(response) {
  if (response.ok) return response;
  const body = await response.json().catch(() => ({}));
  const error = body.error?.message ?? body.error ?? response.statusText;
  throw new Failed(response.status, error, Number(response.headers.get("Retry-After")) || 0);
}

/**
 * Wait some seconds, until the computer is online again, until the user asks for another try, or until a signal.
 * @param {number} seconds @param {AbortSignal} [signal] @returns {Promise<void>}
 */
function pause(seconds, signal) {
  return new Promise((resolve) => {
    /** @type {[EventTarget, string][]} */
    const events = [[window, "online"], [document, "again"]];
    if (signal) events.push([signal, "abort"]);
    const end = () => {
      clearTimeout(timer);
      for (const [target, name] of events) target.removeEventListener(name, end);
      resolve();
    };
    const timer = setTimeout(end, 1000 * seconds);
    for (const [target, name] of events) target.addEventListener(name, end);
  });
}

/**
 * Run a request again while the server is busy or does not answer, after growing intervals.
 * `say` shows why it waits, until it is called without a text; also with whether that is a problem, and has a button for another try.
 * @template T @param {() => T} request @param {Say} say @param {AbortSignal} [signal]
 */
export async function retrying(request, say, signal) {
  for (let n = 0; ; n += 1) {
    try {
      return await request();
    } catch (error) {
      const isOffline = error instanceof Offline;
      const first = isOffline ? OFFLINE_S : error.retryAfter;
      if (!first || signal?.aborted) throw error;
      const wait = Math.max(first, Math.min(MAX_WAIT_S, first * 2 ** n));
      say(t(isOffline ? "offline" : "busy", wait), isOffline, wait >= BUTTON_S);
      await pause(wait, signal);
      say();
      signal?.throwIfAborted();
    }
  }
}

/** @param {string} path @param {AbortSignal} [signal] */
export async function get(path, signal) {
  return ask(path, { headers: headers(), signal });
}

/**
 * `say` is called with what a person should know about the answer.
 * @param {string} path @param {object} body @param {AbortSignal} [signal] @param {Say} [say]
 */
export async function post(path, body, signal, say) {
  const options = { method: "POST", headers: headers({ "Content-Type": "application/json" }), signal };
  return ask(path, { ...options, body: JSON.stringify(body) }, (response) => {
    for (const [note] of (response.headers.get("Warning") ?? "").matchAll(/"(?:[^"\\]|\\.)*"/g)) say?.(JSON.parse(note));
    return response.json();
  });
}

/** @param {string} path @param {Record<string, string | File>} fields @param {AbortSignal} [signal] */
async function upload(path, fields, signal) {
  const form = new FormData();
  for (const [name, value] of Object.entries(fields)) form.append(name, value);
  return ask(path, { method: "POST", headers: headers(), body: form, signal });
}

/**
 * Translate a file. Returns the address of the result, and a name if the server gives none.
 * `progress` is called with the numbers of sentences that are translated, and of all; `say` shows why it waits.
 * @param {File} file @param {Record<string, string>} fields @param {FileProgress} options
 * @returns {Promise<TranslatedFile>}
 */
export async function translateFile(file, fields, { progress, say, signal }) {
  const id = [...crypto.getRandomValues(new Uint8Array(16))].map((x) => x.toString(16).padStart(2, "0")).join("");
  let isAsked = false;
  const poll = setInterval(async () => {
    if (isAsked) return; // a slow answer is waited for
    isAsked = true;
    try {
      const { done, total } = await get(`/translate_file/progress/${id}`, signal);
      if (total) progress(done, total);
    } catch { /* the answer to the file tells */ }
    isAsked = false;
  }, POLL_MS);
  try {
    const { translatedFileUrl, notes } = await retrying(() => upload("/translate_file", { file, progress: id, ...fields }, signal), say, signal);
    return { href: new URL(translatedFileUrl).pathname, name: "", notes };
  } finally {
    clearInterval(poll);
  }
}

/**
 * The records of a stream of server-sent events.
 * @param {string} path @param {object} body @param {AbortSignal} [signal] @returns {AsyncGenerator<CompletionRecord>}
 */
export async function* stream(path, body, signal) {
  const options = { method: "POST", headers: headers({ "Content-Type": "application/json" }), signal };
  const response = await ask(path, { ...options, body: JSON.stringify({ ...body, stream: true }) }, (answer) => answer);
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
