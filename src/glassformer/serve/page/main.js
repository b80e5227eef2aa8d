// The page: a tab for translation, and one for each other model.

import { IS_LOCAL, get, retrying, whileLoading } from "./api.js";
import { el } from "./elements.js";
import { form, taskName } from "./forms.js";
import { kept } from "./session.js";
import { showStatus } from "./status.js";
import { local, session } from "./storage.js";
import { ALT, interfaceLanguage, t } from "./strings.js";
import { translator } from "./translator.js";

async function start() {
  document.documentElement.lang = interfaceLanguage;
  const main = el("main", {});
  const tabs = el("nav", { "aria-label": t("models") });
  const other = interfaceLanguage === "en" ? "fr" : "en";
  const change = () => {
    local.set("interface", other);
    location.reload();
  };
  const shortcuts = el("dialog", { "aria-label": t("help") },
    el("h2", {}, t("help")),
    el("table", {}, t("shortcuts").map(([keys, what]) => el("tr", {}, el("td", {}, el("kbd", {}, keys.replace(/^Alt(?= \+ [A-Z]$)/, ALT))), el("td", {}, what)))),
    el("button", { onclick: () => shortcuts.close() }, t("close")),
  );
  document.body.append(
    el("header", {},
      el("h1", {}, "glassformer"),
      tabs,
      el("span", { class: "right" },
        el("button", { class: "plain", lang: other, onclick: change }, t("language")),
        el("button", { class: "plain", "aria-label": t("help"), title: t("help"), onclick: () => shortcuts.showModal() }, "?"),
      ),
    ),
    main,
    shortcuts,
  );
  document.addEventListener("keydown", (event) => {
    const target = /** @type {HTMLElement} */ (event.target);
    const typing = /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName) || target.isContentEditable;
    if (event.key === "?" && !typing) shortcuts.showModal();
  });
  const waiting = el("p", { role: "alert", class: "notice" });
  main.append(waiting);
  /** @type {Say} */
  const say = (...message) => showStatus(waiting, ...message);
  if (IS_LOCAL) {
    say(t("loading"));
    whileLoading((fraction) => say(t("loaded", Math.floor(100 * fraction))));
  }
  /** @type {LanguageRow[]} */
  let languages;
  /** @type {ModelRow[]} */
  let models;
  /** @type {Settings} */
  let settings;
  try {
    [languages, models, settings] = await Promise.all(["/languages", "/models", "/frontend/settings"].map((path) => retrying(() => get(path), say)));
  } catch (error) {
    say(error.message);
    return;
  }
  if (IS_LOCAL) say();
  if (settings.keyRequired) main.append(keyField());
  /** @param {ModelRow} model */
  const isTranslator = (model) => model.pipeline === "translation" && model.source;
  /** @type {[name: string, label: string, title: string, build: () => HTMLElement][]} */
  const pages = []; // [name, label, title, function that builds it]
  if (models.some(isTranslator)) pages.push(["translation", t("translate"), t("translate"), () => translator(languages, models, settings)]);
  for (const model of models) {
    if (model.pipeline && !isTranslator(model)) pages.push([model.id, model.id, `${model.id}: ${taskName(model)}`, () => form(model, settings)]);
  }
  /** @type {Map<string, HTMLElement>} */
  const shown = new Map();
  /** @type {string} */
  let current;
  /** @param {string} name */
  const open = (name) => {
    current = name;
    for (const [id, , title, build] of pages) {
      if (id === name) document.title = `${title} – ${IS_LOCAL ? models[0].id : "glassformer"}`;
      if (id === name && !shown.has(id)) {
        shown.set(id, build());
        main.append(shown.get(id));
      }
      if (shown.has(id)) shown.get(id).hidden = id !== name;
    }
    for (const tab of tabs.children) tab.setAttribute("aria-current", tab.getAttribute("data-name") === name ? "page" : "false");
  };
  for (const [id, label] of pages) tabs.append(el("button", { class: "tab", "data-name": id, onclick: () => open(id) }, label));
  tabs.hidden = pages.length < 2;
  const last = kept("page", () => current);
  const first = pages.find(([id]) => id === last) ?? pages[0];
  if (first) open(first[0]);
  else say(t("noModels"));
}

function keyField() {
  const input = el("input", { type: "password", id: "key", autocomplete: "off", value: session.get("key") ?? "",
    oninput: () => session.set("key", input.value.trim()),
    onchange: () => document.dispatchEvent(new Event("key")) }); // what was refused is asked again
  return el("form", { class: "key", onsubmit: (event) => event.preventDefault() }, el("label", { for: "key" }, `${t("key")} `), input, el("small", {}, ` ${t("keyHelp")}`));
}

start();
