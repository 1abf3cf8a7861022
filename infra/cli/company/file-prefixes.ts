/** The prefixes of the files of one company in the service's bucket. */
import { COMPANY_EXPORTS } from "#shared/jobs/s3-keys.ts";
import { folderNames } from "../../routes/route.ts";

export const filePrefixes = (companyId: number): string[] => folderNames.map((folder) => `${folder}/${companyId}/`);
export const exportsPrefix = (companyId: number): string => `${COMPANY_EXPORTS}/${companyId}/`;
export const allPrefixes = (companyId: number): string[] => [...filePrefixes(companyId), exportsPrefix(companyId)];
