// What is shown in place of a translation as long as there is no text.

import { IS_LOCAL } from "./api.js";
import { el } from "./elements.js";
import { interfaceLanguage, t } from "./strings.js";

const EXAMPLES = {
  de: "Die alte Frau liest im Garten ein Buch. Ihr kleiner Hund schläft unter dem Tisch.",
  en: "The old woman is reading a book in the garden. Her small dog sleeps under the table.",
  es: "La anciana lee un libro en el jardín. Su perrito duerme debajo de la mesa.",
  fr: "La vieille femme lit un livre dans le jardin. Son petit chien dort sous la table.",
  it: "L’anziana legge un libro in giardino. Il suo cagnolino dorme sotto il tavolo.",
  nl: "De oude vrouw leest een boek in de tuin. Haar hondje slaapt onder de tafel.",
  pt: "A senhora idosa lê um livro no jardim. O cãozinho dela dorme debaixo da mesa.",
};
const LOCAL = /^(localhost|127\..*|\[::1\])$/;

/**
 * A note where texts are translated, and an example.
 * @param {(example: string) => void} use called with the example
 * @param {string[]} codes source languages
 */
export function emptyState(use, codes) {
  let language;
  const button = el("button", { class: "example", onclick: () => use(EXAMPLES[language]) });
  const node = el("div", { class: "empty" },
    el("p", {}, IS_LOCAL || LOCAL.test(location.hostname) ? t("local") : t("remote", location.host)),
    button);
  /**
   * Offer the example of a language; without a language, that of the interface or of the first that has one.
   * @param {string} [code]
   */
  const show = (code) => {
    const wanted = code ? [code] : [interfaceLanguage, ...codes];
    language = wanted.find((name) => codes.includes(name) && name in EXAMPLES);
    button.hidden = !language;
    button.lang = language ?? "";
    button.replaceChildren(el("small", { lang: interfaceLanguage }, t("example")), EXAMPLES[language] ?? "");
  };
  return Object.assign(node, { show });
}
