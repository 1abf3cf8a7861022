/** Creates a multipart form with one CSV file, as a browser does. */

export function csvForm(text: string | Uint8Array<ArrayBuffer>, field = "file", fileName = "prospects.csv"): FormData {
  const form = new FormData();
  form.append(field, new Blob([text], { type: "text/csv" }), fileName);
  return form;
}
