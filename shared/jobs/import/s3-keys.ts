/** Where the files of imports stand in the bucket. */

export const fileKeys = {
  /** What came with the request of an import. */
  sent: (companyId: number, id: number): string => `imports/${companyId}/${id}.csv`,
  /** What is uploaded for an import: the bucket tells the queue of it. */
  uploaded: (companyId: number, id: number): string => `uploads/${companyId}/${id}.csv`,
  /** Which import was this uploaded for? */
  uploadAt: (key: string): { companyId: number; id: number } | undefined => {
    const [, companyId, id] = /^uploads\/([1-9]\d{0,15})\/([1-9]\d{0,15})\.csv$/.exec(key) ?? [];
    return id === undefined ? undefined : { companyId: Number(companyId), id: Number(id) };
  },
  /** The names of the company as they were when the import began. */
  names: (companyId: number, id: number): string => `imports/${companyId}/${id}/names.json`,
  /** Rows of the index in the order of the map, for a part of the file. */
  stretch: (companyId: number, id: number, number: number): string => `imports/${companyId}/${id}/rows-${number}`,
  /** Errors up to this row that wait for the next part of their report. */
  faults: (companyId: number, id: number, row: number): string => `imports/${companyId}/${id}/errors-${row}`,
  /** All errors, as CSV. */
  report: (companyId: number, id: number): string => `imports/${companyId}/${id}/errors.csv`,
} as const;
