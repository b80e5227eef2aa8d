// Translations of sentences, which are asked for in batches and kept: finished sentences at once, the one that is being typed now and then.

import { retrying } from "./api.js";

const AT_ONCE = 20; // sentences of a request
const CONCURRENT = 2; // requests
const DRAFT_MS = 400; // between two requests for the sentence that is being typed
const KEPT = 20000; // translations; more than a text has sentences

export class Requests {
  /** @param {RequestOptions} options */
  constructor({ request, found, failed, say }) {
    this.request = request;
    this.found = found;
    this.failed = failed;
    this.say = say;
    /** @type {Map<string, SentenceTranslation>} */
    this.kept = new Map(); // by number of the options and text
    this.numbers = new Map();
    /** @type {Set<RequestBatch>} */
    this.running = new Set();
    /** @type {Sentence[]} */
    this.parts = [];
    /** @type {Sentence | undefined} */
    this.draft = undefined;
    this.lastDraft = -Infinity;
  }

  /** @param {string} text */
  key(text) {
    return `${this.number} ${text}`;
  }

  /** @param {string} text */
  find(text) {
    return this.kept.get(this.key(text));
  }

  /** @param {string} key @param {SentenceTranslation} translation */
  set(key, translation) {
    this.kept.delete(key);
    this.kept.set(key, translation);
    if (this.kept.size > KEPT) this.kept.delete(this.kept.keys().next().value);
  }

  /**
   * The options of translations that are found and asked for from now on.
   * @param {object} options
   */
  use(options) {
    const name = JSON.stringify(options);
    if (!this.numbers.has(name)) this.numbers.set(name, this.numbers.size);
    this.number = this.numbers.get(name);
    this.options = options;
  }

  /**
   * Ask for what is not known of the sentences of a text.
   * @param {Sentence[]} parts @param {Sentence} [draft]
   */
  want(parts, draft) {
    this.parts = parts;
    this.draft = draft;
    this.hasFailed = false;
    const wanted = new Set(parts.map((part) => part.text));
    for (const batch of this.running) {
      const isNeeded = batch.texts.some((text) => wanted.has(text)) || (batch.draft && batch.draft.start === draft?.start);
      if (batch.number !== this.number || !isNeeded) this.stop(batch);
    }
    this.ask();
  }

  /** @param {RequestBatch} batch */
  stop(batch) {
    batch.controller.abort();
    this.running.delete(batch);
  }

  ask() {
    clearTimeout(this.timer);
    if (this.hasFailed) return;
    const running = [...this.running];
    const asked = new Set(running.flatMap((batch) => batch.texts));
    let missing = [...new Set(this.parts.map((part) => part.text))].filter((text) => !asked.has(text) && !this.find(text));
    const draft = missing.includes(this.draft?.text) ? this.draft : undefined;
    const wait = this.lastDraft + DRAFT_MS - performance.now();
    const isEarly = draft && (wait > 0 || running.some((batch) => batch.draft));
    if (isEarly) {
      missing = missing.filter((text) => text !== draft.text);
      if (wait > 0) this.timer = setTimeout(() => this.ask(), wait);
    }
    while (missing.length && this.running.size < CONCURRENT) {
      const texts = missing.splice(0, AT_ONCE);
      const hasDraft = !isEarly && texts.includes(draft?.text);
      if (hasDraft) this.lastDraft = performance.now();
      this.run({ texts, draft: hasDraft ? draft : undefined, number: this.number, controller: new AbortController() });
    }
  }

  /** @param {RequestBatch} batch */
  async run(batch) {
    this.running.add(batch);
    const { texts, draft, controller: { signal } } = batch;
    const keys = texts.map((text) => this.key(text));
    const { options } = this;
    try {
      const translations = await retrying(() => this.request(texts, options, signal), this.say, signal);
      if (signal.aborted) return;
      this.running.delete(batch);
      texts.forEach((_, i) => this.set(keys[i], translations[i]));
      this.found(draft?.start, translations[texts.indexOf(draft?.text)]);
      this.ask();
    } catch (error) {
      this.running.delete(batch);
      if (signal.aborted) return;
      this.hasFailed = true;
      this.failed(error);
    }
  }
}
