/** A fault plan in which about every fifth call to the table fails. */
import { type Fault, type FaultPlan, pass, serverError, throttle } from "../harness/faulty-dynamodb.ts";

const SHARE_OF_FAULTS = 0.2;

export const oneInFive: FaultPlan = (operation) => {
  if (Math.random() >= SHARE_OF_FAULTS) return pass;
  const isBatch = operation === "BatchGetItem" || operation === "BatchWriteItem";
  const faults: Fault[] = [
    throttle,
    serverError,
    { kind: "lose reply" },
    isBatch ? { kind: "part", share: 0.5 } : throttle,
  ];
  return faults[Math.floor(Math.random() * faults.length)] ?? pass;
};
