/** Where the files of exports stand in the bucket. */

export const exportKeys = {
  /** What is downloaded. */
  file: (companyId: number, id: number): string => `exports/${companyId}/${id}.csv`,
  /** Which prospects it holds, in their order. */
  order: (companyId: number, id: number): string => `exports/${companyId}/${id}.order`,
} as const;
