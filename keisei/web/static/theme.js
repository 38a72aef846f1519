// Set before the first paint, so that a chosen theme never flashes: loaded in <head>, not as a module.
{
  const remembered = (name, allowed) => allowed.find(value => value === localStorage.getItem(`keisei.${name}`)) ?? allowed[0];
  document.documentElement.dataset.theme = remembered("theme", ["auto", "light", "dark"]);
  document.documentElement.dataset.pieces = remembered("pieces", ["kanji", "letters"]);
}
