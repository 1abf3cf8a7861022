import { useTestKms } from "./kms.ts";

await useTestKms();
