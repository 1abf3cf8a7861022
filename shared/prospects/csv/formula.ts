/** The formula guard: no exported cell is taken for a formula by a spreadsheet, and an import gives each text back as it was. */

const beginsFormula = /^[=+\-@\t\r]/;
/** Guarded, or looking as if it were. */
const isGuarded = /^'+[=+\-@\t\r]/;
/** A plain number or phone, with at least one digit, is no danger and of use only as it is. */
const isPlain = /^(?=.*\d)[\d +\-().]+$/;

/** `unguarded` takes back exactly what this does. */
export const guarded = (text: string): string =>
  (beginsFormula.test(text) && !isPlain.test(text)) || isGuarded.test(text) ? `'${text}` : text;

export const unguarded = (cell: string): string => (isGuarded.test(cell) ? cell.slice(1) : cell);
