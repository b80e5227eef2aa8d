// Requests to the model in this page, in the form of those to a server: a worker computes them.

import { t } from "./strings.js";

export const IS_LOCAL = true; // nothing is sent to a server

const MAX_CHARACTERS = 20000; // of the text that is translated while one types
const FORMATS = [".txt"];
// Errors of the worker that have a text.
const KNOWN = /** @type {const} */ (["memory", "noWebAssembly", "damaged", "noServer"]);
const UNKNOWN = ["source", "target"]; // languages
const PROTECT = "markers"; // of Weblate and OmegaT, as the server does

/** @param {string} id */
const content = (id) => document.getElementById(id)?.textContent ?? ""; // nothing, if the end of the file is missing

/** @param {string} base64 */
function bytesOf(base64) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(base64);
  const bytes = new Uint8Array(Math.floor(base64.length / 4) * 3 - (base64.endsWith("==") ? 2 : Number(base64.endsWith("="))));
  const step = 1 << 16;
  for (let i = 0, at = 0; i < base64.length; i += step) for (const c of atob(base64.slice(i, i + step))) bytes[at++] = c.charCodeAt(0);
  return bytes;
}

/** @param {Bytes} bytes */
async function inflated(bytes) {
  const stream = new Blob([bytes]).stream().pipeThrough(new window.DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** A worker that answers calls, in their order. */
class Engine {
  constructor() {
    this.worker = new Worker(URL.createObjectURL(new Blob([content("worker")], { type: "text/javascript" })));
    /** @type {Map<number, PendingCall>} */
    this.calls = new Map();
    this.n = 0;
    this.worker.onmessage = (/** @type {MessageEvent<AnswerMessage>} */ { data: { id, part, result, error } }) => {
      const call = this.calls.get(id);
      if (part) {
        call?.receive(part);
        return;
      }
      this.calls.delete(id);
      const known = KNOWN.find((name) => name === error);
      if (error !== undefined) call?.reject(new Error(known ? t(known) : error));
      else call?.resolve(result);
    };
    this.worker.onerror = (event) => {
      for (const call of this.calls.values()) call.reject(new Error(event.message ?? t("noWebAssembly")));
      this.calls.clear();
    };
  }

  /**
   * `receive` is called with each part of the result, if it comes in parts.
   * @param {string} method @param {object} values @param {CallOptions} options @returns {Promise<any>}
   */
  call(method, values, { signal, transfer, receive } = {}) {
    signal?.throwIfAborted();
    const id = (this.n += 1);
    return new Promise((resolve, reject) => {
      const abort = () => {
        if (!this.calls.delete(id)) return;
        this.worker.postMessage({ cancel: id });
        reject(signal.reason);
      };
      /** @param {(value: any) => void} settle */
      const settled = (settle) => (/** @type {unknown} */ value) => {
        signal?.removeEventListener("abort", abort);
        settle(value);
      };
      this.calls.set(id, { resolve: settled(resolve), reject: settled(reject), receive });
      signal?.addEventListener("abort", abort);
      this.worker.postMessage({ id, method, values }, transfer);
    });
  }
}

async function loaded() {
  const { WebAssembly, DecompressionStream } = window;
  if (typeof WebAssembly !== "object" || typeof DecompressionStream !== "function") throw new Error(t("noWebAssembly"));
  let model, builds, size, sum, url;
  try {
    let deflated;
    ({ size, sum, deflated, url } = JSON.parse(content("model-sum")));
    if (!url) model = bytesOf(content("model")); // in an <xmp>: Chromium reads its 80 MB in 0.1 s less than those of a <script>
    if (deflated) model = await inflated(model);
    const nodes = [.../** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll("script[data-build]"))];
    builds = Object.fromEntries(await Promise.all(nodes.map(async (node) => [node.dataset.build, await inflated(bytesOf(node.textContent.trim()))])));
  } catch {
    throw new Error(t("damaged"));
  }
  if (url) url = new URL(url, location.href).href;
  const engine = new Engine();
  /** @param {number} fraction */
  const receive = (fraction) => { for (const show of waiting) show(fraction); };
  /** @type {ModelDescription} */
  const description = await engine.call("load", { builds, model, url, size, sum }, { transfer: model ? [model.buffer] : [], receive });
  return { engine, ...description };
}

/** @type {Set<(fraction: number) => void>} */
const waiting = new Set(); // functions that show which part of the model has come

/**
 * Call a function with the fraction of the model that has come from a server.
 * @param {(fraction: number) => void} show
 */
export function whileLoading(show) {
  waiting.add(show);
}

/** @type {Promise<ModelDescription & { engine: Engine }>} */
let loading;
const model = () => (loading ??= loaded());

/**
 * @param {string[]} texts @param {TranslationRequest} body @param {AbortSignal} [signal]
 * @returns {Promise<TranslationOutput[][]>}
 */
async function translations(texts, body, signal) {
  const { engine } = await model();
  const { align, confidence, beam, terms, tag, alternatives = 0 } = body;
  const options = { align, confidence, beam, terms, tag, protect: PROTECT, nbest: alternatives + 1 };
  return Promise.all(texts.map((text) => engine.call("translate", { text, options }, { signal })));
}

/**
 * The answer of `/translate` of a server.
 * @param {TranslationRequest} body @param {AbortSignal} [signal]
 */
async function translate(body, signal) {
  if (body.prefix !== undefined) {
    const { engine } = await model();
    const { q: text, prefix, alternatives, beam, terms, tag, align, confidence } = body;
    const options = { beam, align, confidence, terms, tag, protect: PROTECT };
    const found = await engine.call("continuations", { text, prefix, n: alternatives + 1, options }, { signal });
    return { continuations: found };
  }
  const found = await translations([body.q].flat(), body, signal);
  /** @param {(nbest: TranslationOutput[]) => unknown} of */
  const values = (of) => (Array.isArray(body.q) ? found.map(of) : of(found[0]));
  /** @param {TranslationOutput[]} nbest */
  const others = (nbest) => [...new Set(nbest.map(({ text }) => text))].filter((text) => text !== nbest[0].text);
  /** @type {Record<string, unknown>} */
  const answer = { translatedText: values(([best]) => best.text) };
  if (body.align) answer.alignment = values(([best]) => best.alignment);
  if (body.confidence) answer.words = values(([best]) => best.words ?? []);
  if (found.some(([best]) => best.readAs.length)) answer.readAs = values(([best]) => best.readAs);
  if (found.some(([best]) => best.missing.length)) answer.missing = values(([best]) => best.missing);
  if (found.some(([best]) => best.truncated)) answer.truncated = values(([best]) => best.truncated);
  if (body.alternatives) answer.alternatives = values(others);
  return answer;
}

/** @param {string} path @returns {Promise<any>} */
export async function get(path) {
  const { name, task, pipeline, labels, inputs, languages, tags, hasConfidence } = await model();
  const isTranslator = task === "translation";
  const [source, target] = isTranslator && !languages.length ? UNKNOWN : languages;
  const features = ["inspect", ...(isTranslator ? ["align"] : []), ...(hasConfidence ? ["confidence"] : [])];
  return {
    "/languages": isTranslator ? [{ code: source, name: source, targets: [target] }, { code: target, name: target, targets: [] }] : [],
    "/models": [{ id: name, task, pipeline, labels, inputs, tags, source, target, features }],
    "/frontend/settings": {
      charLimit: MAX_CHARACTERS, keyRequired: false, suggestions: false, supportedFilesFormat: FORMATS,
      language: { source: { code: source }, target: { code: target } },
    },
  }[path];
}

/**
 * For the pipeline of a model, the method of the worker and its values, from the inputs of a request to a server.
 * @type {Record<string, (inputs: any) => [method: string, values: Record<string, any>]>}
 */
const CALLS = {
  "text-classification": (inputs) => ["predict", typeof inputs === "string" ? { text: inputs } : { text: inputs.text, pair: inputs.text_pair }],
  "token-classification": (text) => ["tag", { text }],
  "question-answering": ({ question, context }) => ["answer", { question, context }],
  "fill-mask": (text) => ["fill", { text }],
  "feature-extraction": ({ source_sentence: text, sentences: others }) => ["similarities", { text, others }],
  summarization: (text) => ["summarize", { text }],
};

/**
 * The output of a model, as of a server. `say` is called with what was cut off.
 * @param {{ inputs: any }} body @param {AbortSignal} [signal] @param {Say} [say]
 */
async function output({ inputs }, signal, say) {
  const { engine, pipeline } = await model();
  const [method, { pair, ...values }] = CALLS[pipeline](inputs);
  if (Object.values(values).some((value) => !value.length || (value.trim && !value.trim()))) throw new Error(t("noText"));
  const { result, limit } = await engine.call(method, { ...values, pair }, { signal });
  if (method === "fill" && !result.length) throw new Error(limit === null ? t("noMask") : t("cutOff", limit));
  if (limit !== null) say?.(t("cutOff", limit));
  return method === "summarize" ? [{ summary_text: result }] : result;
}

/** @param {string} path @param {any} body @param {AbortSignal} [signal] @param {Say} [say] @returns {Promise<any>} */
export async function post(path, body, signal, say) {
  if (path.startsWith("/inspect/")) return (await model()).engine.call(path.slice("/inspect/".length), body, { signal });
  if (path === "/inspect") {
    const { q: text, tag, off, search } = body;
    return (await model()).engine.call("record", { text, options: { protect: PROTECT, tag, off, search } }, { signal });
  }
  if (path.startsWith("/models/")) return output(body, signal, say);
  if (path !== "/translate") throw new Error(`this page has no ${path}`);
  return translate(body, signal);
}

/** The page that shows records of what happens in the model. */
export async function inspectionPage() {
  return new TextDecoder().decode(await inflated(bytesOf(content("inspection").trim())));
}

/**
 * Run a request. A worker is never busy for others.
 * @template T @param {() => T} request
 */
export async function retrying(request) {
  return request();
}

/**
 * The records of a continuation, as of a server.
 * @param {string} _path @param {CompletionRequest} request @param {AbortSignal} [signal]
 * @returns {AsyncGenerator<CompletionRecord>}
 */
export async function* stream(_path, { prompt: text, max_tokens: maxTokens, temperature }, signal) {
  const { engine } = await model();
  /** @type {CompletionPart[]} */
  const parts = [];
  /** @type {(value?: unknown) => void} */
  let wake;
  /** @param {CompletionPart} part */
  const receive = (part) => {
    parts.push(part);
    wake?.();
  };
  let isDone = false;
  const done = engine.call("complete", { text, options: { maxTokens, temperature } }, { signal, receive });
  done.catch(() => {}).finally(() => { isDone = true; wake?.(); });
  while (!isDone || parts.length) {
    if (!parts.length) await new Promise((resolve) => { wake = resolve; });
    for (const { text: more, limit } of parts.splice(0)) yield limit ? { choices: [], note: t("beginningCutOff", limit) } : { choices: [{ text: more }] };
  }
  await done;
}

/**
 * Translate a text file line by line. Returns the address and the name of the result.
 * @param {File} file @param {Record<string, string>} fields @param {FileProgress} options
 * @returns {Promise<TranslatedFile>}
 */
export async function translateFile(file, { target, terms, tag }, { progress, signal }) {
  const [, stem, ending] = /^(.*?)(\.[^.]*)?$/s.exec(file.name);
  if (!FORMATS.includes(ending?.toLowerCase())) throw new Error(t("noSuchFormat", FORMATS.join(", ")));
  let text;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(await file.arrayBuffer());
  } catch {
    throw new Error(t("notUtf8"));
  }
  const { engine } = await model();
  const options = { terms: JSON.parse(terms), tag, protect: PROTECT };
  const lines = text.split("\n");
  const results = [];
  for (const line of lines) {
    results.push((await engine.call("translate", { text: line, options }, { signal }))[0].text);
    progress(results.length, lines.length);
  }
  const blob = new Blob([results.join("\n")], { type: "text/plain;charset=utf-8" });
  return { href: URL.createObjectURL(blob), name: `${stem}.${target}${ending}` };
}
